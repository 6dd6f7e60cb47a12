"""Random Triton programs, each with what NumPy says that it must compute.

A program is drawn from a number, step by step (`generate`). Each step adds operations to it: a line of the kernel's
text, and a function of NumPy arrays that says what the line means (`program`). Running those functions in order
gives the memory that the kernel must leave (`machine`). A program that fails is made smaller by leaving out steps
(`shrink`), and printed as a Python file that needs nothing of this package (`report`).

    make fuzz-programs N=20000 SEED=1     # a campaign: failures go to out/programs, the first ones of a kind small as well
    make fuzz-programs ONLY=1234          # one program again
"""
