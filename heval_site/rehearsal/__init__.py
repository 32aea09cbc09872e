"""A whole study is played on this machine before anybody is paid: a copy of it, a stand-in of its panel, robots as its people.

``runner`` starts it from the running site, in a process, a folder and a database of its own; ``stage`` is that process; ``play`` is what
happens there, with the people of ``cast``; ``report`` says what came of it. Nothing is imported here: the process sets its doors before.
"""
