"""What an annotator's cycle costs, measured beside a bare Django view. docs: explanation/performance.

    python -m tools.proofs.bench.annotator_cycle                             everything, about ten minutes
    python -m tools.proofs.bench.annotator_cycle --clients 8 --seconds 2 --databases sqlite --only load
    python -m tools.proofs.bench.profile_cycle                               where the time of one cycle goes

A *cycle* is what one page costs: open it (GET), send its answers (POST), be acknowledged (302). A *claim* is the POST of Start.
The bare project (``bare/``) has no middleware, one SELECT, one template and one INSERT; it runs under the same gunicorn
configuration, on the same database server with the same database settings, and both are measured in turn in one run, because
seconds of one machine say nothing about another. Compare ratios, and CPU time before wall time.

machine    CPU seconds and memory of process trees; PostgreSQL and gunicorn, started here and stopped by their own pid
load       the clients: one process, plain sockets, no HTML parser
study      the study that is answered, built and launched by the code of the tests
bare       the project to compare with
"""
