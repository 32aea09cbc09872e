"""Planning before the first answer: what a study of this size can and cannot find.

`plan_parts` are the sizes to simulate. `simulate_part` simulates whole studies of one (`plan_inputs`: size, target,
variation) and judges each with the analysis of the report, over people and prompts. `assemble_plan` makes the plan. `quick_power` has the same numbers in closed form, approximately. Classical tests
have their exact power in `power`. A simulated power has the Monte-Carlo error sqrt(p (1 - p) / R).

A plan depends on assumptions about annotators before the study. It is not observed power and says nothing about data.
"""
