"""The demo board: small systems continue fables, and robots rate them in five rounds.

``systems`` has the systems, ``world`` what is true of them and of the robots, ``texts`` what people read, and ``rounds``
makes the board and plays its rounds.
"""
