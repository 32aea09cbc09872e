"""What people decide about somebody's pay, on what evidence, and what the person who was refused says to it.

Nobody is refused by default, by a list or by a job: each rejection is one person's decision about one piece of work.
"""
