from django.db import models


class Item(models.Model):
    prompt = models.TextField()
    left = models.TextField()
    right = models.TextField()


class Assignment(models.Model):
    code = models.CharField(max_length=32, unique=True)
    person = models.CharField(max_length=64)


class Answer(models.Model):
    code = models.CharField(max_length=32)
    number = models.PositiveIntegerField()
    left = models.PositiveSmallIntegerField()
    right = models.PositiveSmallIntegerField()
