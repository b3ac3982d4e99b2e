import { annotations } from '@rollcall/crds/kinds.ts';
import type { DeliveryJobSpec, OldArtifact } from '@rollcall/crds/types.gen.ts';
import type { Deployment, PodTemplate } from '@rollcall/platform/kube/builtin-kinds.ts';
import { fetchedChecksum, serviceContainer } from './artifact.ts';

/** By which a user says the version of a Deployment. */
export const VERSION_LABEL = 'app.kubernetes.io/version';
/** Of the custom resource. */
const URL_LIMIT = 2048;
/** A tag that is nothing but numbers names a release; others name builds and variants of one. */
const RELEASE_TAG = /^v?\d+\.\d+(\.\d+)?$/;

/** By which the container that is the service is known. */
type Wanted = Pick<DeliveryJobSpec, 'serviceName' | 'artifact'>;

/** What the annotation `rollcall.dev/version` was written for. */
interface VersionRecord {
  readonly version: string;
  /** The image, or the checksum of the binary; null for a container without an image. */
  readonly runs: string | null;
  /** The label with the version then, which jobs leave alone. */
  readonly label: string | null;
}

/**
 * The version that a Deployment runs, undefined where nothing says so: its annotation, if what runs
 * is what that was written for; else its label; else the tag of its image. A label that differs
 * from a tag that names a release was forgotten when the image changed.
 */
export function runningVersion(deployment: Deployment, wanted: Wanted): string | undefined {
  const { annotations: notes, labels } = deployment.metadata;
  const noted = notes?.[annotations.version];
  const record = parseRecord(notes?.[annotations.versionOf]);
  const isRecorded = noted !== undefined && record?.version === noted;
  if (noted !== undefined && !(isRecorded && record.runs !== runningReference(deployment, wanted))) return noted;
  const label = labels?.[VERSION_LABEL];
  const tag = imageTag(deployment, wanted);
  const isForgotten =
    (isRecorded && record.label === (label ?? null)) ||
    (label !== undefined && tag !== undefined && RELEASE_TAG.test(tag) && !isSameRelease(label, tag));
  return isForgotten ? tag : (label ?? tag);
}

/** The annotations that say which version a Deployment runs with this pod template. */
export function versionAnnotations(
  deployment: Deployment,
  template: PodTemplate,
  wanted: Wanted & Pick<DeliveryJobSpec, 'version'>,
): Readonly<Record<string, string>> {
  const next = { ...deployment, spec: { ...deployment.spec, template } };
  const runs = runningReference(next, wanted) ?? null;
  const { version } = wanted;
  const record: VersionRecord = { version, runs, label: deployment.metadata.labels?.[VERSION_LABEL] ?? null };
  return { [annotations.version]: version, [annotations.versionOf]: JSON.stringify(record) };
}

/**
 * What that version is run from; undefined where it is a binary, which the image says nothing of.
 */
export function runningArtifact(deployment: Deployment, wanted: Wanted): OldArtifact | undefined {
  if (fetchedChecksum(deployment.spec.template) !== undefined) return undefined;
  const { image = '' } = serviceContainer(deployment, wanted.serviceName, wanted.artifact.url) ?? {};
  return image === '' || image.length > URL_LIMIT ? undefined : { type: 'image', url: image };
}

/**
 * What makes the version: the checksum of the binary, else the image of the service's container.
 */
function runningReference(deployment: Deployment, wanted: Wanted): string | undefined {
  return (
    fetchedChecksum(deployment.spec.template) ??
    serviceContainer(deployment, wanted.serviceName, wanted.artifact.url)?.image
  );
}

/**
 * The tag of an image that the service is run from; one that a binary is mounted into says nothing
 * of the version.
 */
function imageTag(deployment: Deployment, wanted: Wanted): string | undefined {
  if (fetchedChecksum(deployment.spec.template) !== undefined) return undefined;
  const { image } = serviceContainer(deployment, wanted.serviceName, wanted.artifact.url) ?? {};
  const [reference = ''] = image?.split('@', 1) ?? [];
  return /:([\w][\w.-]{0,127})$/.exec(reference.slice(reference.lastIndexOf('/') + 1))?.[1];
}

/** 2.0 and v2.0.0 are the same release, and 2.0.0-rc.1 or 2.0.0+build is a variant of it. */
function isSameRelease(label: string, tag: string): boolean {
  const [a, b] = [numbersOf(label), numbersOf(tag)];
  return [0, 1, 2].every((index) => (a[index] ?? 0) === (b[index] ?? 0));
}

function numbersOf(version: string): number[] {
  return version.replace(/^v/, '').split(/[-+]/, 1)[0]?.split('.').map(Number) ?? [];
}

function parseRecord(text: string | undefined): VersionRecord | undefined {
  if (text === undefined) return undefined;
  try {
    const record: unknown = JSON.parse(text);
    return isRecord(record) ? record : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is VersionRecord {
  return typeof value === 'object' && value !== null && 'version' in value && 'runs' in value && 'label' in value;
}
