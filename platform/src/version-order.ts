import { compareBuild, parse } from 'semver';

/**
 * The version that counts as the latest: the one announced last where that has no order, else the
 * highest of all that have. Other versions have no order but that in which they were announced, and
 * say nothing about that of these.
 *
 * @param versions the one announced last first; of equal ones it wins.
 */
export function latestVersion(versions: readonly string[]): string | undefined {
  const [latest] = versions;
  if (latest === undefined || parseVersion(latest) === undefined) return latest;
  return versions.reduce(
    (highest, version) => ((compareVersions(version, highest) ?? 0) > 0 ? version : highest),
    latest,
  );
}

/**
 * Whether the version is an update of the one that runs: a higher one is; where that is unknown,
 * any other one.
 */
export function isUpdate(current: string, version: string): boolean {
  const order = compareVersions(version, current);
  return order === undefined ? current !== version : order > 0;
}

/** Whether it is one that comes before a release, such as 2.0.0-rc.1. */
export function isPreRelease(version: string): boolean {
  return (parseVersion(version)?.rest.prerelease.length ?? 0) > 0;
}

type Version = NonNullable<ReturnType<typeof parseVersion>>;

/** @returns above 0 where the first is higher; undefined where one of the two has no order. */
function compareVersions(one: string, other: string): number | undefined {
  const [a, b] = [parseVersion(one), parseVersion(other)];
  return a === undefined || b === undefined ? undefined : compareParsed(a, b);
}

/** By the precedence of Semantic Versioning; numbers that are left out are 0. */
function compareParsed(a: Version, b: Version): number {
  for (let index = 0; index < Math.max(a.numbers.length, b.numbers.length); index += 1) {
    const difference = (a.numbers[index] ?? 0) - (b.numbers[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return compareBuild(a.rest, b.rest);
}

/**
 * Numbers with dots between, as many as there may be, then what Semantic Versioning has behind
 * them. A lone number is all of it.
 */
function parseVersion(version: string) {
  const [, digits = '', behind = ''] = /^[v=\s]*(\d{1,15}(?:\.\d{1,15})*)(.*)$/.exec(version) ?? [];
  const rest = parse(`0.0.0${behind}`, { loose: true });
  const numbers = digits.split('.').map(Number);
  return digits === '' || rest === null || (numbers.length === 1 && behind !== '') ? undefined : { numbers, rest };
}
