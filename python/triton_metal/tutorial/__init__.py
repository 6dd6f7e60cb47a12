"""``python -m triton_metal tutorial``: the pages of docs/tutorial at the terminal, one step at a time.

`pages` reads them, `running` runs what a learner types and counts it, `state` remembers the place, `view` prints, and `session`
is the conversation.
"""
