import { annotations } from '@rollcall/crds/kinds.ts';
import type { OldArtifact } from '@rollcall/crds/types.gen.ts';
import type { Deployment } from '@rollcall/platform/kube/builtin-kinds.ts';
import { FETCHER_CONTAINER, serviceContainer } from './artifact.ts';

const VERSION_LABEL = 'app.kubernetes.io/version';
/** Of the custom resource. */
const URL_LIMIT = 2048;

/** The version that a Deployment runs: its annotation, which every job writes, else its label, else the tag of its image. */
export function runningVersion(deployment: Deployment, serviceName: string): string | undefined {
  const { metadata } = deployment;
  return (
    metadata.annotations?.[annotations.version] ?? metadata.labels?.[VERSION_LABEL] ?? imageTag(deployment, serviceName)
  );
}

/** What that version is run from; undefined where it is a binary, which the image says nothing of. */
export function runningArtifact(deployment: Deployment, serviceName: string): OldArtifact | undefined {
  const { initContainers = [] } = deployment.spec.template.spec;
  if (initContainers.some(({ name }) => name === FETCHER_CONTAINER)) return undefined;
  const { image = '' } = serviceContainer(deployment, serviceName) ?? {};
  return image === '' || image.length > URL_LIMIT ? undefined : { type: 'image', url: image };
}

function imageTag(deployment: Deployment, serviceName: string): string | undefined {
  const { image } = serviceContainer(deployment, serviceName) ?? {};
  const [reference = ''] = image?.split('@', 1) ?? [];
  return /:([\w][\w.-]{0,127})$/.exec(reference.slice(reference.lastIndexOf('/') + 1))?.[1];
}
