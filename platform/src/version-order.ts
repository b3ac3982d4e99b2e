import { compareBuild, parse, type SemVer } from 'semver';

/**
 * The version that is to be taken for the latest: the one announced last where that is no Semantic Version, else the highest
 * of all that are. Other versions have no order but that in which they were announced, and say nothing about that of these.
 *
 * @param versions the one announced last first; of equal ones it wins.
 */
export function latestVersion(versions: readonly string[]): string | undefined {
  const [latest] = versions;
  if (latest === undefined || parseVersion(latest) === undefined) return latest;
  return versions.reduce((highest, version) => (isHigher(version, highest) ? version : highest), latest);
}

/** Whether the version is an update of the one that runs: a higher one is; where that cannot be told, any other one. */
export function isUpdate(current: string, version: string): boolean {
  const isOrdered = parseVersion(current) !== undefined && parseVersion(version) !== undefined;
  return isOrdered ? isHigher(version, current) : current !== version;
}

function isHigher(version: string, other: string): boolean {
  const [a, b] = [parseVersion(version), parseVersion(other)];
  return a !== undefined && b !== undefined && compareBuild(a, b) > 0;
}

function parseVersion(version: string): SemVer | undefined {
  return parse(version, { loose: true }) ?? undefined;
}
