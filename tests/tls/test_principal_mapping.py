"""`ssl.principal.mapping.rules`: whose name makes which user."""

from __future__ import annotations

import pytest

from pykafka_broker.tls.core.principal_mapping import NoRuleApplies, PrincipalMapping

RULES = ", ".join(
    [
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
        "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
        "DEFAULT",
    ]
)


@pytest.mark.parametrize(
    ("distinguished_name", "name"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_the_first_rule_that_matches_decides(distinguished_name: str, name: str) -> None:
    assert PrincipalMapping(RULES).name_of(distinguished_name) == name


def test_without_rules_the_whole_name_is_the_users() -> None:
    assert PrincipalMapping().name_of("CN=a,O=b") == "CN=a,O=b"
    assert PrincipalMapping(None).name_of("CN=a,O=b") == "CN=a,O=b"


def test_no_rule_applies() -> None:
    with pytest.raises(NoRuleApplies, match="No rules apply to CN=a"):
        PrincipalMapping("RULE:^CN=b$/x/").name_of("CN=a")
    with pytest.raises(NoRuleApplies):
        PrincipalMapping("").name_of("CN=a")


def test_a_pattern_has_to_match_the_whole_name() -> None:
    with pytest.raises(NoRuleApplies):
        PrincipalMapping("RULE:CN=a/x/").name_of("CN=a,O=b")


def test_each_match_in_the_name_is_replaced() -> None:
    # As in Java: the pattern matches once more, with nothing, at the end.
    assert PrincipalMapping("RULE:.*/x/").name_of("CN=a") == "xx"


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/", r"Tkac\, Adam"),
        ("RULE:^CN=(?<user>[^,]+), (.*)$/${user}-$2/", r"Tkac\-Adam,OU=a/b"),
        # Group 12 is none, so this is group 1 and a 2.
        ("RULE:^CN=([^ ]+) .*$/$12/", r"Tkac\,2"),
        ("RULE:^CN=([^ ]+) .*$/$0/", r"CN=Tkac\, Adam,OU=a/b"),
        ("RULE:^CN=([^ ]+) .*$/$01/", r"Tkac\,"),
        ("RULE:^CN=([^ ]+) .*$/$4@$5/", "$4@$5"),
        (r"RULE:^CN=(\p{Alpha}+)\P{Alnum}[\p{Punct}\p{Space}]+(\p{L}+),.*$/$2.$1/", "Adam.Tkac"),
        (r"RULE:^.*OU=a\/b$/\$1\/\\/", "$1/\\"),
    ],
)
def test_replacements(rule: str, name: str) -> None:
    assert PrincipalMapping(rule).name_of(r"CN=Tkac\, Adam,OU=a/b") == name


@pytest.mark.parametrize("replacement", ["$1", "$", "${none}", "${open"])
def test_a_replacement_that_is_none(replacement: str) -> None:
    with pytest.raises(ValueError, match="group"):
        PrincipalMapping(f"RULE:.*/{replacement}/").name_of("CN=a")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (",   , , ,      , , ,   ", 0),
        ("DEFAULT", 1),
        ("  RULE:// ,  DEFAULT  ", 2),
        (",,RULE://,,,DEFAULT,,", 2),
        (
            "RULE:,RULE:,/,RULE:,\\//U,RULE:,/RULE:,/,RULE:,RULE:,/L,RULE:,/L,RULE:, DEFAULT, /DEFAULT/,"
            "DEFAULT",
            5,
        ),
    ],
)
def test_rules_between_commas(text: str, count: int) -> None:
    assert len(PrincipalMapping(text).rules) == count


@pytest.mark.parametrize(
    "text",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "RULE:CN=(.*?),OU=ServiceUsers.*/$1",
        "rule:^CN=(.*?),OU=ServiceUsers.*$/$1/",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L/U",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/LU",
        "RULE:(/x/",
        r"RULE:\p{IsLatin}*/x/",
        "RULE:[a-z&&[^b]]*/x/",
    ],
)
def test_rules_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="Invalid rule"):
        PrincipalMapping(text)
