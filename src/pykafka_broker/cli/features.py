"""`features`: describe, raise and lower the finalized levels of features; lines as of kafka-features.sh."""

from __future__ import annotations

import click

from pykafka_broker import __version__
from pykafka_broker.cli import Group
from pykafka_broker.cli.cells import Column, Table
from pykafka_broker.cli.cluster import Cluster, cluster_or_controller_options
from pykafka_broker.cli.options import pairs
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.connection import SOFTWARE_NAME, check
from pykafka_broker.system.named_tuple import NamedTuple

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class Feature(NamedTuple):
    """A feature, and the levels of it that the broker supports; finalized at 0 if it is off."""

    feature: str
    supported_min_level: int
    supported_max_level: int
    finalized_level: int
    epoch: int


class ChangedFeature(NamedTuple):
    """A feature whose level is changed, or could be, with `dry_run`."""

    feature: str
    level: int
    dry_run: bool


@click.group(cls=Group)
def features() -> None:
    """Describe, upgrade and downgrade the levels of features."""


@features.command()
@cluster_or_controller_options
@json_option(Feature, key="features")
def describe(cluster: Cluster, output: Output) -> None:
    """Describe the levels that the cluster has, and those that it could have."""
    with cluster.connect() as client:
        found = described_features(client)
    output.show_all(found, (_line(feature) for feature in found), [feature_table(found)])


def described_features(client: Client) -> list[Feature]:
    """The features that the broker knows, by their names."""
    from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest

    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
    answer = client.send(request)
    check(answer.error_code)
    finalized = {feature.name: feature.max_version_level for feature in answer.finalized_features}
    return [
        Feature(
            feature.name,
            feature.min_version,
            feature.max_version,
            finalized.get(feature.name, 0),
            answer.finalized_features_epoch,
        )
        for feature in sorted(answer.supported_features, key=lambda feature: str(feature.name))
    ]


def _line(feature: Feature) -> str:
    lowest, highest, finalized = _level_names(feature)
    return (
        f"Feature: {feature.feature:<42}SupportedMinVersion: {lowest:<17}SupportedMaxVersion: {highest:<17}"
        f"FinalizedVersionLevel: {finalized:<17}Epoch: {feature.epoch}"
    )


def feature_table(found: list[Feature]) -> Table:
    """One row for each feature."""
    columns = (Column("FEATURE"), Column("LEVEL"), Column("SUPPORTED FROM", drop=2), Column("TO", drop=1))
    rows = []
    for feature in found:
        lowest, highest, finalized = _level_names(feature)
        rows.append((feature.feature, finalized, lowest, highest))
    return Table(columns, rows)


def _level_names(feature: Feature) -> tuple[str, str, str]:
    """The lowest, the highest and the finalized level; those of metadata.version have names."""
    from pykafka_broker.cluster.features import METADATA_VERSION_NAMES
    from pykafka_broker.cluster.image import METADATA_VERSION

    levels = (feature.supported_min_level, feature.supported_max_level, feature.finalized_level)
    names = METADATA_VERSION_NAMES if feature.feature == METADATA_VERSION else {}
    lowest, highest, finalized = (names.get(level, str(level)) for level in levels)
    return lowest, highest, finalized


@features.command()
@click.argument("levels", nargs=-1, required=True, metavar="FEATURE=LEVEL...")
@click.option("--dry-run", is_flag=True, help="Only ask whether it would be accepted.")
@cluster_or_controller_options
@json_option(ChangedFeature, key="features")
def upgrade(levels: tuple[str, ...], dry_run: bool, cluster: Cluster, output: Output) -> None:
    """Raise the levels of features, of all or none.

    A level is a number; that of metadata.version may also be a release, as 4.3-IV0.
    """
    _change(levels, UPGRADE, dry_run, cluster, output)


@features.command()
@click.argument("levels", nargs=-1, required=True, metavar="FEATURE=LEVEL...")
@click.option("--unsafe", is_flag=True, help="Even if metadata may be lost.")
@click.option("--dry-run", is_flag=True, help="Only ask whether it would be accepted.")
@cluster_or_controller_options
@json_option(ChangedFeature, key="features")
def downgrade(levels: tuple[str, ...], unsafe: bool, dry_run: bool, cluster: Cluster, output: Output) -> None:
    """Lower the levels of features, of all or none; level 0 switches a feature off."""
    _change(levels, UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE, dry_run, cluster, output)


def _change(
    levels: tuple[str, ...], upgrade_type: int, dry_run: bool, cluster: Cluster, output: Output
) -> None:
    from pykafka_broker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

    wanted = {name: _level(name, level) for name, level in pairs(levels, "FEATURE=LEVEL")}
    request = UpdateFeaturesRequest(
        timeout_ms=int(cluster.timeout_s * 1000),
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
            for name, level in wanted.items()
        ],
        validate_only=dry_run,
    )
    with cluster.connect() as client:
        answer = client.send(request)
    check(answer.error_code, answer.error_message)
    done = "can be" if dry_run else "was"
    verb = "upgraded" if upgrade_type == UPGRADE else "downgraded"
    output.show_all(
        [ChangedFeature(name, level, dry_run) for name, level in wanted.items()],
        [f"{name} {done} {verb} to {level}." for name, level in wanted.items()],
    )


def _level(name: str, level: str) -> int:
    """The number of a level.

    Raises:
        click.BadParameter: it is neither a level nor a release that introduced a metadata.version.
    """
    from pykafka_broker.cluster.features import METADATA_VERSION_NAMES
    from pykafka_broker.cluster.image import METADATA_VERSION

    if level.isascii() and level.isdigit() and int(level) < 1 << 15:
        return int(level)
    numbers = {text: number for number, text in METADATA_VERSION_NAMES.items()}
    if name == METADATA_VERSION and level in numbers:
        return numbers[level]
    raise click.BadParameter(f"{level!r} is no level of {name}", param_hint="FEATURE=LEVEL")
