# SPDX-License-Identifier: GPL-2.0
"""
Metrics and profiles of OTLP from protobuf, in the form of OTLP's JSON.

Uses the definitions of OpenTelemetry if RHIST_OTLP names a folder with them (see
tools/testing/otlp), and otherwise own ones, limited to the fields needed here, which know them by
number.
"""

import json
import os
import struct
import sys

# By number: name, kind, and for a message its fields. A name that ends with * can come more than
# once.
VALUE = {1: ("stringValue", "string"), 2: ("boolValue", "varint"), 3: ("intValue", "varint"), 4: ("doubleValue", "double")}
ATTRIBUTE = {1: ("key", "string"), 2: ("value", VALUE)}
EXEMPLAR = {2: ("timeUnixNano", "fixed"), 3: ("asDouble", "double"), 6: ("asInt", "signed"), 7: ("filteredAttributes*", ATTRIBUTE)}
NUMBER = {
    2: ("startTimeUnixNano", "fixed"), 3: ("timeUnixNano", "fixed"), 4: ("asDouble", "double"), 5: ("exemplars*", EXEMPLAR),
    6: ("asInt", "signed"), 7: ("attributes*", ATTRIBUTE),
}
BUCKETS = {1: ("offset", "zigzag"), 2: ("bucketCounts*", "packed")}
HISTOGRAM = {
    1: ("attributes*", ATTRIBUTE), 2: ("startTimeUnixNano", "fixed"), 3: ("timeUnixNano", "fixed"), 4: ("count", "fixed"),
    5: ("sum", "double"), 6: ("scale", "zigzag"), 7: ("zeroCount", "fixed"), 8: ("positive", BUCKETS), 9: ("negative", BUCKETS),
    11: ("exemplars*", EXEMPLAR), 12: ("min", "double"), 13: ("max", "double"), 14: ("zeroThreshold", "double"),
}
METRIC = {
    1: ("name", "string"), 2: ("description", "string"), 3: ("unit", "string"), 5: ("gauge", {1: ("dataPoints*", NUMBER)}),
    7: ("sum", {1: ("dataPoints*", NUMBER), 2: ("aggregationTemporality", "varint"), 3: ("isMonotonic", "varint")}),
    10: ("exponentialHistogram", {1: ("dataPoints*", HISTOGRAM), 2: ("aggregationTemporality", "varint")}),
}
SCOPE = {1: ("scope", {1: ("name", "string"), 2: ("version", "string")}), 2: ("metrics*", METRIC)}
RESOURCE = {1: ("resource", {1: ("attributes*", ATTRIBUTE)}), 2: ("scopeMetrics*", SCOPE)}
REQUEST = {1: ("resourceMetrics*", RESOURCE)}
SAMPLE = {1: ("stackIndex", "varint"), 2: ("attributeIndices*", "packed"), 4: ("values*", "packed")}
PROFILE = {
    1: ("sampleType", {1: ("typeStrindex", "varint"), 2: ("unitStrindex", "varint")}), 2: ("samples*", SAMPLE),
    3: ("timeUnixNano", "fixed"), 4: ("durationNano", "varint"), 11: ("attributeIndices*", "packed"),
}
LOCATION = {3: ("lines*", {1: ("functionIndex", "varint")}), 4: ("attributeIndices*", "packed")}
DICTIONARY = {
    1: ("mappingTable*", {}), 2: ("locationTable*", LOCATION), 3: ("functionTable*", {1: ("nameStrindex", "varint")}), 4: ("linkTable*", {}),
    5: ("stringTable*", "string"), 6: ("attributeTable*", {1: ("keyStrindex", "varint"), 2: ("value", VALUE)}),
    7: ("stackTable*", {1: ("locationIndices*", "packed")}),
}
PROFILES_SCOPE = {1: ("scope", {1: ("name", "string"), 2: ("version", "string")}), 2: ("profiles*", PROFILE)}
PROFILES_RESOURCE = {1: ("resource", {1: ("attributes*", ATTRIBUTE)}), 2: ("scopeProfiles*", PROFILES_SCOPE)}
PROFILES = {1: ("resourceProfiles*", PROFILES_RESOURCE), 2: ("dictionary", DICTIONARY)}


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def scalar(kind, number):
    """Converts a number whose bits were read as unsigned into this kind."""
    if kind == "zigzag":
        return number >> 1 ^ -(number & 1)
    if kind == "double":
        return struct.unpack("<d", struct.pack("<Q", number))[0]
    if kind == "signed":
        return struct.unpack("<q", struct.pack("<Q", number))[0]
    return number


def message(data, fields):
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        name, kind = fields[tag >> 3]
        if tag & 7 == 0:
            value, at = varint(data, at)
            value = scalar(kind, value)
        elif tag & 7 == 1:
            value, at = scalar(kind, int.from_bytes(data[at:at + 8], "little")), at + 8
        else:
            length, at = varint(data, at)
            part, at = data[at:at + length], at + length
            assert len(part) == length
            if kind == "packed":
                place = 0
                while place < length:
                    number, place = varint(part, place)
                    found.setdefault(name[:-1], []).append(number)
                continue
            value = part.decode() if kind == "string" else message(part, kind)
        if name.endswith("*"):
            found.setdefault(name[:-1], []).append(value)
        else:
            found[name] = value
    return found


def definitions(fields=REQUEST):
    """
    Returns the module json_format and an empty request with these fields, or None without the
    definitions of OpenTelemetry.
    """
    if not (folder := os.environ.get("RHIST_OTLP")):
        return None
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from google.protobuf import json_format
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest

    return json_format, ExportMetricsServiceRequest() if fields is REQUEST else ExportProfilesServiceRequest()


def from_protobuf(data, fields=REQUEST):
    """Parses a request with these fields from bytes of protobuf."""
    own = message(data, fields)
    if not (found := definitions(fields)):
        return own
    json_format, request = found
    request.ParseFromString(data)
    # The conversion would drop a field that is missing in the definitions.
    known = json_format.Parse(json_format.MessageToJson(request), type(request)())
    if len(known.SerializeToString()) != len(data):
        raise ValueError("there are fields that OpenTelemetry does not know")
    return numbers(json_format.MessageToDict(request))


def from_json(data):
    """Parses a request from JSON."""
    if found := definitions():
        json_format, request = found
        # Fails at an unknown member.
        return numbers(json_format.MessageToDict(json_format.Parse(data, request)))
    return numbers(json.loads(data))


def numbers(value, name=""):
    """Converts JSON's strings of digits to numbers."""
    if isinstance(value, dict):
        return {name: numbers(member, name) for name, member in value.items()}
    if isinstance(value, list):
        return [numbers(member, name) for member in value]
    if name == "aggregationTemporality" and isinstance(value, str):
        return {"AGGREGATION_TEMPORALITY_DELTA": 1, "AGGREGATION_TEMPORALITY_CUMULATIVE": 2}[value]
    return int(value) if name in INTEGERS and isinstance(value, str) else value


def samples(bodies):
    """
    All samples of profiles: name and unit, attributes, functions from the innermost one, and the
    value.
    """
    for _, body in bodies:
        request = from_protobuf(body, PROFILES)
        words = request["dictionary"]
        strings = words["stringTable"]

        def attributes(owner, words=words, strings=strings):
            of_owner = (words["attributeTable"][index] for index in owner.get("attributeIndices", []))
            return {strings[one["keyStrindex"]]: next(iter(one["value"].values())) for one in of_owner}

        def functions(index, words=words, strings=strings):
            for place in words["stackTable"][index].get("locationIndices", []):
                location = words["locationTable"][place]
                name = strings[words["functionTable"][location["lines"][0]["functionIndex"]]["nameStrindex"]]
                yield name, attributes(location)["profile.frame.type"]

        for resource in request["resourceProfiles"]:
            for scope in resource["scopeProfiles"]:
                for profile in scope["profiles"]:
                    kind = profile["sampleType"]
                    name = strings[kind["typeStrindex"]], strings[kind["unitStrindex"]]
                    for sample in profile.get("samples", []):
                        yield name, attributes(sample), list(functions(sample.get("stackIndex", 0))), sample["values"][0]


INTEGERS = ("startTimeUnixNano", "timeUnixNano", "asInt", "count", "zeroCount", "bucketCounts", "intValue", "durationNano", "values")
