"""The README of the proofs names each program."""

from tests import ROOT

PROOFS = ROOT / "tools" / "proofs"


def test_the_readme_names_each_program():
    named = (PROOFS / "README.md").read_text(encoding="utf-8")
    programs = {
        ".".join(path.relative_to(PROOFS).with_suffix("").parts).removesuffix(".__main__")
        for path in PROOFS.rglob("*.py")
        if "ArgumentParser(" in path.read_text(encoding="utf-8")
    }
    assert len(programs) > 15
    assert not [
        program
        for program in sorted(programs)
        if f"`{program}" not in named and f"tools.proofs.{program} " not in named
    ]
