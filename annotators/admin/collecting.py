"""Admin pages for preparing and collecting: collecting page, inbox, preview and test runs."""

from urllib.parse import urlencode

from django.conf import settings
from django.contrib import admin, messages
from django.http import Http404, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import path, reverse
from django.utils.html import escape

from annotators.pages.sequence import describe_page_key
from annotators.participation.withdrawal import mark_inquiry_handled
from annotators.pay import statement
from annotators.pay.decisions import appeals_awaiting_answer
from annotators.places import monitor
from annotators.places.assign import count_qualification_results
from annotators.places.batch_plan import delete_test_runs, start_test_run
from annotators.places.monitor import latest_stopping_figures
from annotators.views.lookup import content_security_policy
from studies.access import Action, get_study
from studies.admin import acts, study_page, workflow
from studies.admin.permissions import ReadOnlyAdmin, is_request_allowed
from studies.models import Study
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused

from ..models import Inquiry
from .preview import build_preview_html, render_preview_page
from .recruitment import LINKS_SHOWN, labelled_link_urls


@admin.register(Inquiry)
class InquiryAdmin(ReadOnlyAdmin):
    """Registered for the pages of a study; the collecting page lists its rows."""

    def has_module_permission(self, request):
        return False

    def changelist_view(self, request, extra_context=None):
        return HttpResponseRedirect(reverse("admin:studies_study_changelist"))

    def study_urls(self):
        wrap = self.admin_site.admin_view
        return [
            path("<int:pk>/collecting/", wrap(self.collecting_view), name="annotators_collecting"),
            path(
                "<int:pk>/inbox/<int:inquiry>/",
                wrap(self.mark_inquiry_handled_view),
                name="annotators_handle_inquiry",
            ),
            path("<int:pk>/preview/", wrap(self.preview_view), name="annotators_preview"),
            path("<int:pk>/preview/<str:key>/", wrap(self.preview_view), name="annotators_preview_page"),
            path("<int:pk>/test-run/", wrap(self.start_test_run_view), name="annotators_test_run"),
            path("<int:pk>/test-runs/clear/", wrap(self.delete_test_runs_view), name="annotators_clear_test_runs"),
        ]

    # Collecting

    def collecting_view(self, request, pk):
        study = get_study(request.user, Action.VIEW, pk=pk)
        total, arms = monitor.count_places_by_arm(study)
        overall_pay, by_arm = statement.pay_overall_and_by_arm(study)
        recruitments = list(study.recruitments.order_by("pk"))
        may_edit = is_request_allowed(request, Action.RECRUIT, study.pk)
        inquiries = list(monitor.inquiries_unhandled_first(study)[:200])
        last_check, evidence = latest_stopping_figures(study)
        context = {
            "title": "Collecting",
            "total": total,
            "test": count_qualification_results(study),
            "counted": total.submitted - (total.replaced if study.target_kind == Study.Target.KEPT else 0),
            "arms": arms if len(arms) > 1 else [],
            "robots": study.assignments.filter(origin="robot", submitted_at__isnull=False).count(),
            "days": monitor.recent_daily_counts_of_live_assignments(study),
            "median_times": monitor.median_working_times(study),
            "comments": list(monitor.latest_survey_comments(study)),
            "appeals": list(appeals_awaiting_answer(recruitments)),
            "inquiries": [(inquiry, describe_page_key(inquiry.page_key)) for inquiry in inquiries],
            "waiting": sum(inquiry.handled_at is None for inquiry in inquiries),
            "recruitments": [
                (
                    recruitment,
                    (links := labelled_link_urls(recruitment) if may_edit else [])[:3],
                    max(0, len(links) - 3),
                )
                for recruitment in recruitments
            ],
            "links_shown": LINKS_SHOWN,
            "add_url": f"{reverse('admin:annotators_recruitment_add')}?study={study.pk}",
            "list_url": f"{reverse('admin:annotators_assignment_changelist')}?study={study.pk}",
            "may_edit": may_edit,
            "is_blind": study.is_draft or study.is_blind,
            "last_check": last_check,
            "evidence": evidence,
            **acts.available_acts_by_weight(request, study),
            "closing_words": workflow.closing_status_text(study),
            "per_hour_aim": study.wage_per_hour,
            "everybody": overall_pay,
            "pay_warning": statement.low_wage_warning(study, by_arm),
            "is_capped": study.cap is not None and lifecycle.count_opened_places_towards_cap(study) >= study.cap,
        }
        return study_page.render_study_page(request, "admin/annotators/collecting.html", study, context)

    def mark_inquiry_handled_view(self, request, pk, inquiry):
        """Mark an inquiry as handled or not handled."""
        study = get_study(request.user, Action.MANAGE_ASSIGNMENTS, pk=pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        chosen = get_object_or_404(Inquiry, assignment__study=study, pk=inquiry)
        mark_inquiry_handled(chosen, request.user, "again" not in request.POST)
        return HttpResponseRedirect(f"{reverse('admin:annotators_collecting', args=[study.pk])}#inbox")

    # Preview and test runs

    def preview_view(self, request, pk, key=""):
        """Show one page as annotators will see it. The preview discards everything that is sent from it."""
        study = get_study(request.user, Action.VIEW, pk=pk)
        arms = list(study.arms.order_by("name"))
        arm = next((arm for arm in arms if str(arm.pk) == request.GET.get("arm", "")), None)
        framed = {
            "Content-Security-Policy": content_security_policy(frame_ancestors=("'self'",)),
            "X-Frame-Options": "SAMEORIGIN",
            "Cache-Control": "no-store",
        }
        # Another page shows this one in a frame, without the bar.
        is_bare = "bare" in request.GET
        options = ({"arm": arm.pk} if arm else {}) | ({"bare": 1} if is_bare else {})
        query = f"?{urlencode(options)}" if options else ""

        def nothing_yet(refused):
            if is_bare:
                return HttpResponse(
                    f"There is nothing to preview yet. {refused}", content_type="text/plain", headers=framed
                )
            messages.warning(request, f"There is nothing to preview yet. {refused}")
            return HttpResponseRedirect(f"{reverse('admin:studies_study_change', args=[study.pk])}#checklist")

        def address(name):
            return f"{reverse('admin:annotators_preview_page', args=[study.pk, name])}{query}"

        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "POST"])
        if request.method == "POST":
            return HttpResponseRedirect(address(key) if key else address("landing"))
        try:
            page = render_preview_page(request, study, key, arm)
        except ActionRefused as refused:
            return nothing_yet(refused)
        except KeyError:
            raise Http404("The study has no such page.") from None
        except (ValueError, TypeError) as refused:  # a scale or a setting cannot be read: the checklist names it
            return nothing_yet(refused)
        index = page.keys.index(page.key)
        bar = render_to_string(
            "admin/annotators/preview_bar.html",
            {
                "study": study,
                "pages": [(address(name), page.names[name], name == page.key) for name in page.keys],
                "previous": address(page.keys[index - 1]) if index else "",
                "following": address(page.keys[index + 1]) if index + 1 < len(page.keys) else "",
                "arms": [(choice, choice == arm) for choice in arms] if len(arms) > 1 else [],
                "here": reverse("admin:annotators_preview_page", args=[study.pk, page.key]),
                "home": reverse("admin:studies_study_change", args=[study.pk]),
                "test_run_url": reverse("admin:annotators_test_run", args=[study.pk])
                if study.is_draft and is_request_allowed(request, Action.EDIT, study.pk)
                else "",
            },
            request,
        )
        head = f'<link rel="stylesheet" href="{escape(settings.STATIC_URL)}preview-bar.css">'

        def image(name):
            return reverse("admin:studies_media", args=[study.pk, name]) if name else ""

        html = build_preview_html(page, address, image, "" if is_bare else bar, head, get_token(request))
        return HttpResponse(html, headers=framed)

    def start_test_run_view(self, request, pk):
        """Take part on the real pages, marked as a test run. GET explains this and offers a button."""
        study = get_study(request.user, Action.EDIT, pk=pk)
        if request.method == "POST":
            arm = next((arm for arm in study.arms.all() if str(arm.pk) == request.POST.get("arm", "")), None)
            try:
                assignment = start_test_run(study, request.user, arm)
                return HttpResponseRedirect(f"/p/{assignment.code}/")
            except (ActionRefused, ValueError, TypeError) as refused:
                messages.warning(request, f"A test run is not possible yet. {refused}")
                return HttpResponseRedirect(f"{reverse('admin:studies_study_change', args=[study.pk])}#checklist")
        context = {
            "title": "Test run",
            "arms": list(study.arms.order_by("name")),
            "test_runs": study.assignments.filter(origin="test", source=None).order_by("-pk")[:50],
            "clear_url": reverse("admin:annotators_clear_test_runs", args=[study.pk]),
            "home": reverse("admin:studies_study_change", args=[study.pk]),
        }
        return study_page.render_study_page(request, "admin/annotators/test_run.html", study, context)

    def delete_test_runs_view(self, request, pk):
        study = get_study(request.user, Action.EDIT, pk=pk)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            n = delete_test_runs(study, request.user)
            message = f"{n} test runs were deleted, with their answers." if n != 1 else "One test run was deleted."
            messages.success(request, message)
        except ActionRefused as refused:
            messages.warning(request, str(refused))
        return HttpResponseRedirect(reverse("admin:annotators_test_run", args=[study.pk]))
