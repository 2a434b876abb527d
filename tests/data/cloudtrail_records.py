"""One CloudTrail record: an API call drawn from the catalog, or a sign-in."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass
from datetime import datetime

from cloudtrail_catalog import ACCOUNT, Call, Caller, Catalog, Json, Record, Words, fill
from cloudtrail_identities import identity

ERROR_RATE = 0.06
MISTYPED_PASSWORD_RATE = 0.15
OFFICE_HOURS = range(6, 20)
BATCH_HOURS = (2, 3)
API_VERSIONS = {"dynamodb": "2012-08-10", "logs": "20140328"}
CIPHERS = {"TLSv1.2": "ECDHE-RSA-AES128-GCM-SHA256", "TLSv1.3": "TLS_AES_128_GCM_SHA256"}
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0"
HIDDEN = "HIDDEN_DUE_TO_SECURITY_REASONS"  # AWS's stand-in for a user name that does not exist


@dataclass(frozen=True)
class Occurrence:
    """One call that a caller made at a time, with the words its templates are filled with."""

    call: Call
    caller: Caller
    time: datetime
    region: str
    words: Words
    rng: random.Random

    def new_id(self) -> str:
        """Return the next UUID."""
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))


def draw_record(rng: random.Random, catalog: Catalog, region: str, time: datetime) -> Record:
    """Return a record of a caller who is about at that hour."""
    weights = [caller.weight * presence(caller, time.hour) for caller in catalog.callers]
    caller = rng.choices(catalog.callers, weights)[0]
    calls = catalog.choices_for(caller, region)
    call = rng.choices(calls, [call.weight for call in calls])[0]
    if call.source == "signin":
        failure = "Failed authentication" if rng.random() < MISTYPED_PASSWORD_RATE else None
        return sign_in(rng, region, time, identity(caller, time), rng.choice(caller.addresses), failure)
    words = catalog.draw_words(rng, region, time)
    occurrence = Occurrence(call, caller, time, region, words, rng)
    who = identity(caller, time)
    return {**heading(occurrence, who), **outcome(occurrence, who, catalog), **trailer(occurrence)}


def presence(caller: Caller, hour: int) -> float:
    """Return how much of a caller's weight counts at an hour of the day, UTC."""
    if caller.group in ("human", "root"):
        return 1.0 if hour in OFFICE_HOURS else 0.15
    if caller.name == "EtlNightly":
        return 5.0 if hour in BATCH_HOURS else 0.4
    return 1.0


def heading(occurrence: Occurrence, who: Record) -> Record:
    """Return the fields that say who called what, when and from where."""
    return {
        "eventVersion": "1.09" if occurrence.call.data else "1.08",
        "userIdentity": who,
        "eventTime": f"{occurrence.time:%Y-%m-%dT%H:%M:%SZ}",
        "eventSource": f"{occurrence.call.source}.amazonaws.com",
        "eventName": occurrence.call.name,
        "awsRegion": occurrence.region,
        "sourceIPAddress": occurrence.rng.choice(occurrence.caller.addresses),
        "userAgent": occurrence.rng.choice(occurrence.caller.agents),
    }


def outcome(occurrence: Occurrence, who: Record, catalog: Catalog) -> Record:
    """Return the parameters and the response; an error comes with two more fields and no response."""
    call, rng = occurrence.call, occurrence.rng
    request, response = fill(call.request, occurrence.words), fill(call.response, occurrence.words)
    if call.source not in catalog.errors or occurrence.caller.is_inside_aws or rng.random() >= ERROR_RATE:
        return {"requestParameters": request, "responseElements": response, **extra_data(occurrence)}
    code, message = rng.choice(catalog.errors[call.source])
    caller = str(who.get("arn", who.get("principalId")))
    is_hidden = code == "AccessDenied" and call.source in ("kms", "iam")
    return {
        "errorCode": code,
        "errorMessage": message.format_map({**occurrence.words, "caller": caller, "call": call.name}),
        "requestParameters": None if is_hidden else request,
        "responseElements": None,
        **extra_data(occurrence),
    }


def extra_data(occurrence: Occurrence) -> Record:
    """Return `additionalEventData`, which S3 fills in and most services leave out."""
    if occurrence.call.source != "s3":
        return {}
    size = occurrence.words["size"]
    data: Record = {
        "SignatureVersion": "SigV4",
        "CipherSuite": CIPHERS["TLSv1.2"],
        "bytesTransferredIn": size if occurrence.call.name == "PutObject" else 0,
        "AuthenticationMethod": "AuthHeader",
        "bytesTransferredOut": size if occurrence.call.name == "GetObject" else 0,
    }
    return {"additionalEventData": data}


def trailer(occurrence: Occurrence) -> Record:
    """Return the fields that classify the event; those that do not apply are missing, not null."""
    call, caller = occurrence.call, occurrence.caller
    record: Record = {"requestID": occurrence.new_id(), "eventID": occurrence.new_id(), "readOnly": not call.writes}
    if call.resources:
        record["resources"] = [resource(kind, arn, occurrence.words) for kind, arn in call.resources.items()]
    record["eventType"] = "AwsServiceEvent" if caller.kind == "AWSInternal" else "AwsApiCall"
    if call.source in API_VERSIONS:
        record["apiVersion"] = API_VERSIONS[call.source]
    record |= {"managementEvent": not call.data, "recipientAccountId": ACCOUNT}
    if caller.kind == "AWSInternal":
        record["serviceEventDetails"] = {"keyId": occurrence.words["kms_key"]}
    if caller.group in ("partner", "service"):
        record["sharedEventID"] = occurrence.new_id()
    if caller.endpoint and call.source in ("s3", "dynamodb", "kms"):
        record["vpcEndpointId"] = caller.endpoint
    record["eventCategory"] = "Data" if call.data else "Management"
    if not caller.is_inside_aws:
        record["tlsDetails"] = tls(occurrence.rng, f"{call.source}.{occurrence.region}.amazonaws.com")
    return record


def resource(kind: str, arn: str, words: Words) -> Json:
    """Return an entry of `resources`; S3 leaves the account of an object out."""
    entry: Record = {} if kind == "AWS::S3::Object" else {"accountId": ACCOUNT}
    return {**entry, "type": kind, "ARN": arn.format_map(words)}


def tls(rng: random.Random, host: str) -> Record:
    """Return `tlsDetails` for a host that was called."""
    version = "TLSv1.2" if host.startswith("s3.") else rng.choice(sorted(CIPHERS))
    return {"tlsVersion": version, "cipherSuite": CIPHERS[version], "clientProvidedHostHeader": host}


def sign_in(rng: random.Random, region: str, time: datetime, who: Record, address: str, failure: str | None) -> Record:
    """Return a ConsoleLogin, which has no request id; a failure has a message but no code."""
    who = {key: value for key, value in who.items() if key != "accessKeyId"}
    data: Record = {
        "LoginTo": f"https://console.aws.amazon.com/console/home?region={region}",
        "MobileVersion": "No",
        "MFAUsed": "No" if failure else "Yes",
    }
    return {
        "eventVersion": "1.08",
        "userIdentity": who,
        "eventTime": f"{time:%Y-%m-%dT%H:%M:%SZ}",
        "eventSource": "signin.amazonaws.com",
        "eventName": "ConsoleLogin",
        "awsRegion": region,
        "sourceIPAddress": address,
        "userAgent": BROWSER,
        **({"errorMessage": failure} if failure else {}),
        "requestParameters": None,
        "responseElements": {"ConsoleLogin": "Failure" if failure else "Success"},
        "additionalEventData": data,
        "eventID": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        "readOnly": False,
        "eventType": "AwsConsoleSignIn",
        "managementEvent": True,
        "recipientAccountId": ACCOUNT,
        "eventCategory": "Management",
        "tlsDetails": tls(rng, f"{region}.signin.aws.amazon.com"),
    }


def guessed_sign_in(rng: random.Random, catalog: Catalog, region: str, time: datetime, address: str) -> Record:
    """Return a failed ConsoleLogin: a wrong password of a known user, or a user that does not exist."""
    users = [caller for caller in catalog.callers if caller.kind == "IAMUser" and caller.group == "human"]
    if rng.random() < 0.2:
        unknown: Record = {"type": "IAMUser", "accountId": ACCOUNT, "userName": HIDDEN}
        return sign_in(rng, region, time, unknown, address, "No username found in supplied account")
    return sign_in(rng, region, time, identity(rng.choice(users), time), address, "Failed authentication")
