"""Three views: one SELECT and a template, one INSERT, and (to claim) one INSERT."""

import secrets

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import path

from .models import Answer, Assignment, Item

ITEMS = 100


def healthz(request):
    return HttpResponse("ok")


def start(request):
    assignment = Assignment.objects.create(code=secrets.token_urlsafe(16), person=request.GET["who"])
    return HttpResponseRedirect(f"/p/{assignment.code}/1/")


def page(request, code, number):
    if request.method == "POST":
        Answer.objects.create(code=code, number=number, left=request.POST["left"], right=request.POST["right"])
        return HttpResponseRedirect(f"/p/{code}/{number + 1}/" if number < ITEMS else f"/p/{code}/done/")
    shown = {"item": Item.objects.get(pk=number), "number": number, "of": ITEMS}
    return render(request, "item.html", shown, using="bare")


urlpatterns = [
    path("healthz", healthz),
    path("e/bare/", start),
    path("p/<str:code>/<int:number>/", page),
]
