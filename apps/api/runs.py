"""The run of an approved operation: the one task code, whichever worker it is delivered to, however often (AP-6)."""

from uuid import UUID

from apps.api import approval_state, approvals, credentials, gate, lifesigns, switches
from apps.api.call import Call, Entrance
from apps.api.models import Approval


def run(uuid: UUID) -> None:
    """Run it if it is approved and nobody runs it. While the API is switched off or under maintenance it waits for a later delivery."""
    approval = Approval.objects.select_related("key").filter(pk=uuid, state=Approval.State.APPROVED).first()
    now = switches.parse(credentials.read(None).settings)
    if approval is None or not now.api_admin_enabled or now.maintenance_mode:
        return
    started = approvals.start(approval)
    if started is None:
        return
    call = Call(
        entrance=Entrance(request_id=started.request_id, ip=""),
        audience="admin",
        name=started.tool,
        input=started.arguments,
        switches=now,
        approval=started,
    )
    work = approval_state.work_of(started)
    lifesigns.keep(work)
    try:
        gate.go(call, gate.APPROVED)
    finally:
        lifesigns.let_go(work)
