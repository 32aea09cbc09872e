"""Files that are uploaded in tests."""

from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from studies.models import Output

GOOD = b"prompt_key,prompt_text,system,text\np900,Go.,alpha,A story.\np900,Go.,beta,Another one.\n"
BAD = GOOD + b"p901,Go.,zoe,x\n"


def upload(client, study, data=GOOD, name="table.csv", **options):
    return client.post(reverse("import", args=[study.pk]), {"file": SimpleUploadedFile(name, data), **options})


def outputs(study) -> int:
    return Output.objects.filter(system__study=study, prompt__key__startswith="p9").count()
