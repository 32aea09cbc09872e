"""What a fault may cost: nothing that was acknowledged, and nothing twice. docs: explanation/performance.

    python -m tools.proofs.faults.kill_workers [--seconds 60] [--every 1.5] [--clients 16] [--database sqlite|postgres]
    python -m tools.proofs.faults.kill_workers --database postgres --victim database
    python -m tools.proofs.faults.kill_workers --sabotage lost|doubled      must fail: what is it that we would see?

Workers of gunicorn, or the database itself, are killed (SIGKILL) while annotators claim and answer; a client that hears nothing sends
the same again. What was acknowledged is then compared with what the database holds.
"""
