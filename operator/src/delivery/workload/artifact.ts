import { basename, isAbsolute, normalize } from 'node:path/posix';
import { annotations } from '@rollcall/crds/kinds.ts';
import type { Artifact, DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { Container, Deployment, PodSpec, PodTemplate } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { ArtifactSettings } from '../job/snapshot.ts';

/** The init container that fetches a binary. */
export const FETCHER_CONTAINER = 'rollcall-fetch';

const CHECKSUM_ARGUMENT = '--checksum=';
const ARTIFACT_VOLUME = 'rollcall-artifact';
const SECRET_VOLUME = 'rollcall-artifact-secret';
const ARTIFACT_DIRECTORY = '/artifact';
const SECRET_DIRECTORY = '/artifact-secret';

/** The pod template that runs the job's artifact, or why there is none. */
export type TargetTemplate = { readonly template: PodTemplate } | { readonly template?: never; readonly fault: string };

/**
 * Changes nothing but what makes the version: the image of one container, or the binary that is
 * mounted in it.
 */
export function targetTemplate(job: DeliveryJob, deployment: Deployment, settings: ArtifactSettings): TargetTemplate {
  const { serviceName, artifact } = job.spec;
  const container = serviceContainer(deployment, serviceName, artifact.url);
  if (container === undefined) {
    return { fault: containerFault(deployment, serviceName) };
  }
  const { template } = deployment.spec;
  const spec = withoutBinary(template.spec);
  const made =
    artifact.type === 'image'
      ? withImage(spec, container.name, artifact)
      : withBinary(spec, { container: container.name, artifact, settings, deployment });
  return 'fault' in made ? made : { template: { ...template, spec: made.spec } };
}

/**
 * The container that is the service: the annotated one, which may be a native sidecar, else the one
 * named like the service, else the only one, else the only one whose image has the same repository.
 * A guess would give a sidecar the image of the service.
 *
 * @param image reference of an image of the service.
 */
export function serviceContainer(
  { metadata, spec }: Deployment,
  serviceName: string,
  image: string,
): Container | undefined {
  const { containers, initContainers = [] } = spec.template.spec;
  const wanted = metadata.annotations?.[annotations.container];
  if (wanted !== undefined) {
    return [...containers, ...initContainers.filter(isSidecar)].find(({ name }) => name === wanted);
  }
  const named = containers.find(({ name }) => name === serviceName);
  if (named !== undefined || containers.length === 1) return named ?? containers[0];
  const alike = containers.filter((container) => repositoryOf(container.image ?? '') === repositoryOf(image));
  return alike.length === 1 ? alike[0] : undefined;
}

/** Whether an init container stays, beside the others. */
function isSidecar({ name, restartPolicy }: Container): boolean {
  return restartPolicy === 'Always' && name !== FETCHER_CONTAINER;
}

/** An image reference without tag and digest. */
function repositoryOf(image: string): string {
  const [reference = ''] = image.split('@', 1);
  const colon = reference.indexOf(':', reference.lastIndexOf('/') + 1);
  return colon === -1 ? reference : reference.slice(0, colon);
}

function containerFault({ metadata, spec }: Deployment, serviceName: string): string {
  const wanted = metadata.annotations?.[annotations.container];
  if (wanted !== undefined) return `Deployment ${metadata.name} has no container ${wanted}`;
  const names = spec.template.spec.containers.map(({ name }) => name).join(', ');
  const which = `none is named ${serviceName}, and not exactly one has an image of the same repository`;
  return `Deployment ${metadata.name} has the containers ${names}: ${which}. Say which by its annotation ${annotations.container}`;
}

/**
 * The checksum of the binary that a pod template fetches; '' for an unknown one, undefined without
 * a binary.
 */
export function fetchedChecksum({ spec }: PodTemplate): string | undefined {
  const fetcher = spec.initContainers?.find(({ name }) => name === FETCHER_CONTAINER);
  if (fetcher === undefined) return undefined;
  const given = fetcher['args'];
  const texts = Array.isArray(given) ? given.map(String) : [];
  return texts.find((text) => text.startsWith(CHECKSUM_ARGUMENT))?.slice(CHECKSUM_ARGUMENT.length) ?? '';
}

/**
 * What jobs change to bring a version: of two templates with the same, whatever else is in them,
 * run the same version.
 */
export function versionParts({ spec }: PodTemplate): unknown {
  const fetcher = spec.initContainers?.find(({ name }) => name === FETCHER_CONTAINER);
  const sidecars = spec.initContainers?.filter(isSidecar) ?? [];
  return {
    images: [...spec.containers, ...sidecars].map(({ name, image }) => [name, image]),
    fetched: fetcher?.['args'],
  };
}

interface Fault {
  readonly fault: string;
}

type Made = { readonly spec: PodSpec } | Fault;

function withImage(spec: PodSpec, container: string, artifact: Artifact): Made {
  const image = pinnedImage(artifact);
  return typeof image === 'string'
    ? { spec: changeContainer(spec, container, (found) => ({ ...found, image })) }
    : image;
}

/** A checksum pins the image: whatever a tag points at later, the same image runs. */
function pinnedImage({ url, checksum }: Artifact): string | Fault {
  if (checksum === undefined) return url;
  const digest = checksum.toLowerCase();
  if (!digest.startsWith('sha256:')) return { fault: 'The checksum of an image must be sha256' };
  const [reference, given] = url.split('@', 2);
  if (given !== undefined && given !== digest) {
    return { fault: `The image has the digest ${given}, which is not the checksum ${digest}` };
  }
  return `${reference}@${digest}`;
}

interface BinaryWish {
  readonly container: string;
  readonly artifact: Artifact;
  readonly settings: ArtifactSettings;
  readonly deployment: Deployment;
}

function withBinary(spec: PodSpec, { container, artifact, settings, deployment }: BinaryWish): Made {
  const { name, annotations: notes } = deployment.metadata;
  const path = notes?.[annotations.binaryPath];
  const secret = notes?.[annotations.artifactSecret];
  if (settings.fetcherImage === undefined) return { fault: 'This operator has no image to fetch binaries with' };
  if (artifact.checksum === undefined) return { fault: 'A binary needs a checksum' };
  if (path === undefined) {
    return {
      fault: `Deployment ${name} has no annotation ${annotations.binaryPath} that says where the binary belongs`,
    };
  }
  if (!isFilePath(path)) {
    return {
      fault: `Annotation ${annotations.binaryPath} of Deployment ${name} is no absolute path of a file: ${path}`,
    };
  }
  const file = basename(path);
  const fetcher: Container = {
    name: FETCHER_CONTAINER,
    image: settings.fetcherImage,
    args: fetcherArguments(artifact.url, artifact.checksum, { file, secret, settings }),
    volumeMounts: [
      { name: ARTIFACT_VOLUME, mountPath: ARTIFACT_DIRECTORY },
      ...(secret === undefined ? [] : [{ name: SECRET_VOLUME, mountPath: SECRET_DIRECTORY, readOnly: true }]),
    ],
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    terminationMessagePolicy: 'FallbackToLogsOnError',
  };
  const mounted = changeContainer(spec, container, (found) => ({
    ...found,
    volumeMounts: [
      ...(found.volumeMounts ?? []),
      { name: ARTIFACT_VOLUME, mountPath: path, subPath: file, readOnly: true },
    ],
  }));
  // First: what else prepares the pod may need it, and may change how the pod reaches the network.
  const initContainers = [fetcher, ...(mounted.initContainers ?? [])];
  const volumes = [
    ...(spec.volumes ?? []),
    { name: ARTIFACT_VOLUME, emptyDir: {} },
    ...(secret === undefined ? [] : [{ name: SECRET_VOLUME, secret: { secretName: secret } }]),
  ];
  return { spec: { ...mounted, initContainers, volumes } };
}

function isFilePath(path: string): boolean {
  return isAbsolute(path) && normalize(path) === path && path !== '/' && !path.endsWith('/') && !path.includes(':');
}

function fetcherArguments(
  url: string,
  checksum: string,
  rest: { readonly file: string; readonly secret: string | undefined; readonly settings: ArtifactSettings },
): string[] {
  return [
    'fetch',
    `--url=${literal(url)}`,
    `${CHECKSUM_ARGUMENT}${checksum}`,
    `--output=${literal(`${ARTIFACT_DIRECTORY}/${rest.file}`)}`,
    `--max-bytes=${rest.settings.maxBytes}`,
    ...(rest.settings.allowPrivateAddresses ? ['--allow-private'] : []),
    ...(rest.secret === undefined ? [] : [`--credentials-dir=${SECRET_DIRECTORY}`]),
  ];
}

/** Kubernetes expands $(NAME) in arguments; $$ stands for a dollar sign. */
function literal(text: string): string {
  return text.replaceAll('$', '$$$$');
}

/** Removes what an earlier job put there for a binary. */
function withoutBinary(spec: PodSpec): PodSpec {
  const { initContainers, volumes, ...rest } = spec;
  const ours = new Set([ARTIFACT_VOLUME, SECRET_VOLUME]);
  const kept = volumes?.filter(({ name }) => !ours.has(name)) ?? [];
  const others = initContainers?.filter(({ name }) => name !== FETCHER_CONTAINER) ?? [];
  const init = others.map((container) => withoutMounts(container, ours));
  return {
    ...rest,
    containers: spec.containers.map((container) => withoutMounts(container, ours)),
    ...(init.length === 0 ? {} : { initContainers: init }),
    ...(kept.length === 0 ? {} : { volumes: kept }),
  };
}

function withoutMounts(container: Container, volumes: ReadonlySet<string>): Container {
  const { volumeMounts, ...rest } = container;
  if (volumeMounts?.some(({ name }) => volumes.has(name)) !== true) return container;
  const kept = volumeMounts.filter(({ name }) => !volumes.has(name));
  return kept.length === 0 ? rest : { ...rest, volumeMounts: kept };
}

function changeContainer(spec: PodSpec, name: string, change: (container: Container) => Container): PodSpec {
  const changed = (container: Container) => (container.name === name ? change(container) : container);
  return {
    ...spec,
    containers: spec.containers.map(changed),
    ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(changed) }),
  };
}
