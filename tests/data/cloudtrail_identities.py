"""What CloudTrail writes into `userIdentity` for each kind of caller."""

from __future__ import annotations

import random
from datetime import datetime

from cloudtrail_catalog import ACCOUNT, PARTNER_ACCOUNT, Caller, Record

SESSION_HOURS = 4  # a role's session starts at hours divisible by this, and keeps one access key
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"  # of AWS identifiers


def identifier(prefix: str, seed: str, length: int) -> str:
    """Return an AWS identifier such as AIDA...EXAMPLE of a length, always the same for a seed."""
    letters = random.Random(f"{prefix}{seed}").choices(ALPHABET, k=length - len(prefix) - 7)
    return prefix + "".join(letters) + "EXAMPLE"


def identity(caller: Caller, time: datetime) -> Record:
    """Return a caller's `userIdentity`, whose fields differ by kind as AWS's do."""
    match caller.kind:
        case "AWSService":
            return {"type": "AWSService", "invokedBy": caller.name}
        case "AWSInternal":
            return {"accountId": ACCOUNT, "invokedBy": caller.name}
        case "AWSAccount":
            principal = identifier("AIDA", caller.name, 21)
            return {"type": "AWSAccount", "principalId": principal, "accountId": PARTNER_ACCOUNT}
        case "WebIdentityUser":
            provider = f"arn:aws:iam::{ACCOUNT}:oidc-provider/oidc.example.com"
            principal = f"{provider}:sts.amazonaws.com:{caller.name}"
            who: Record = {"type": caller.kind, "principalId": principal, "userName": caller.name}
            return who | {"identityProvider": provider}
        case "AssumedRole":
            return assumed_role(caller, time)
        case "Root":
            return {"type": "Root", "principalId": ACCOUNT, "arn": f"arn:aws:iam::{ACCOUNT}:root", "accountId": ACCOUNT}
    return {
        "type": caller.kind,
        "principalId": identifier("AIDA", caller.name, 21),
        "arn": f"arn:aws:iam::{ACCOUNT}:user/{caller.name}",
        "accountId": ACCOUNT,
        "accessKeyId": identifier("AKIA", caller.name, 20),
        "userName": caller.name,
    }


def assumed_role(caller: Caller, time: datetime) -> Record:
    """Return the `userIdentity` of a role's session, with the session's context."""
    role_id = identifier("AROA", caller.name, 21)
    started = time.replace(hour=time.hour - time.hour % SESSION_HOURS, minute=0, second=0)
    issuer: Record = {
        "type": "Role",
        "principalId": role_id,
        "arn": f"arn:aws:iam::{ACCOUNT}:role/{caller.name}",
        "accountId": ACCOUNT,
        "userName": caller.name,
    }
    attributes: Record = {"creationDate": f"{started:%Y-%m-%dT%H:%M:%SZ}", "mfaAuthenticated": str(caller.mfa).lower()}
    context: Record = {"sessionIssuer": issuer, "webIdFederationData": {}, "attributes": attributes}
    if caller.session.startswith("i-"):
        context["ec2RoleDelivery"] = "2.0"
    return {
        "type": "AssumedRole",
        "principalId": f"{role_id}:{caller.session}",
        "arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/{caller.name}/{caller.session}",
        "accountId": ACCOUNT,
        "accessKeyId": identifier("ASIA", f"{caller.name}{started}", 20),
        "sessionContext": context,
    }
