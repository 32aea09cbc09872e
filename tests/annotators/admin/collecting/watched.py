"""Addresses of the pages on which a study is watched."""


def collecting(client, study):
    return client.get(f"/admin/studies/study/{study.pk}/collecting/")


def detail(assignment):
    return f"/admin/annotators/assignment/{assignment.pk}/change/"
