"""Rehearse a whole study on this machine: robots answer a copy of it, and a stand-in replaces the panel.

``runner`` starts it from the running site, with its own process, folder and database. ``child_process`` is that
process. ``rehearsal`` runs the steps with the people of ``roles``. ``results`` makes the report. Nothing is imported
here, because the process must configure its network first.
"""
