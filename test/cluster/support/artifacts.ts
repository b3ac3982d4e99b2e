import { createHash } from 'node:crypto';
import { mkdtemp, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createCertificate } from '@rollcall/local/certificates.ts';
import { inject } from 'vitest';
import { type ClusterNamespace, sharedCluster } from './namespace.ts';

const NAME = 'artifacts';
const PORT = 8443;
const DIRECTORY = '/artifacts';

/** The program that can be fetched: the test program, answering this whatever its image says. */
export const FETCHED_ANSWER = 'fetched';
const PROGRAM = 'shop.ts';

/** An https server in the cluster, which the cluster's certificate authority vouches for. */
export interface ArtifactPod {
  readonly programUrl: string;
  /** `sha256:<hex>` of the program. */
  readonly programChecksum: string;
}

/** Starts the server. On a node of our own alone, for it needs the authority's key. */
export async function startArtifactPod(namespace: ClusterNamespace): Promise<ArtifactPod> {
  const { kubeconfigPath, appRepository } = sharedCluster();
  const host = `${NAME}.${namespace.name}.svc.cluster.local`;
  const file = join(await mkdtemp(join(inject('clusterDirectory'), 'certificate-')), 'server');
  await createCertificate({
    file,
    authority: join(dirname(kubeconfigPath), 'ca'),
    subject: `/CN=${NAME}`,
    names: `DNS:${host}`,
  });
  const program = await programText();
  const metadata = { name: NAME, labels: { app: NAME } };
  await namespace.apply(
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata,
      stringData: {
        'server.crt': await readFile(`${file}.crt`, 'utf8'),
        'server.key': await readFile(`${file}.key`, 'utf8'),
        [PROGRAM]: program,
      },
    },
    { apiVersion: 'v1', kind: 'Pod', metadata, spec: podSpec(`${appRepository}:v1`) },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: { app: NAME }, ports: [{ port: 443, targetPort: PORT }] },
    },
  );
  await namespace.kubectl('wait', '--for=condition=Ready', `pod/${NAME}`, '--timeout=120s');
  return {
    programUrl: `https://${host}/${PROGRAM}`,
    programChecksum: `sha256:${createHash('sha256').update(program).digest('hex')}`,
  };
}

/** @throws when the test program does not say where its answer comes from as it used to. */
async function programText(): Promise<string> {
  const text = await readFile(join(import.meta.dirname, '..', 'app', 'server.ts'), 'utf8');
  const version = "process.env['APP_VERSION'] ?? 'none'";
  if (!text.includes(version)) throw new Error(`app/server.ts does not have ${version}`);
  return text.replace(version, `'${FETCHED_ANSWER}'`);
}

function podSpec(image: string): object {
  return {
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: NAME,
        image,
        command: ['/bin/node', '/app/artifacts.ts'],
        env: [{ name: 'DIRECTORY', value: DIRECTORY }],
        readinessProbe: { tcpSocket: { port: PORT }, periodSeconds: 1 },
        volumeMounts: [{ name: NAME, mountPath: DIRECTORY, readOnly: true }],
      },
    ],
    volumes: [{ name: NAME, secret: { secretName: NAME } }],
  };
}
