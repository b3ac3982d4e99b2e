import { annotations } from '@rollcall/crds/kinds.ts';
import type { Deployment } from '@rollcall/platform/kube/builtin-kinds.ts';
import { serviceContainer } from './artifact.ts';

const VERSION_LABEL = 'app.kubernetes.io/version';

/** The version that a Deployment runs: its annotation, which every job writes, else its label, else the tag of its image. */
export function runningVersion(deployment: Deployment, serviceName: string): string | undefined {
  const { metadata } = deployment;
  return (
    metadata.annotations?.[annotations.version] ?? metadata.labels?.[VERSION_LABEL] ?? imageTag(deployment, serviceName)
  );
}

function imageTag(deployment: Deployment, serviceName: string): string | undefined {
  const { image } = serviceContainer(deployment, serviceName) ?? {};
  const [reference = ''] = image?.split('@', 1) ?? [];
  return /:([\w][\w.-]{0,127})$/.exec(reference.slice(reference.lastIndexOf('/') + 1))?.[1];
}
