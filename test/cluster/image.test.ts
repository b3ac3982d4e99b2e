import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClusterNamespace, createClusterNamespace, noRollcallImage, sharedCluster } from './support/namespace.ts';

const POLL = { timeout: 120_000, interval: 500 };

/**
 * What the restricted profile of Kubernetes' Pod Security Standards asks for, and a read-only root.
 */
const restricted = {
  pod: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  container: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
};

describe.skipIf(noRollcallImage)("Rollcall's image, restricted", () => {
  let namespace: ClusterNamespace;

  beforeAll(async () => {
    namespace = await createClusterNamespace();
    await namespace.kubectl('label', 'namespace', namespace.name, 'pod-security.kubernetes.io/enforce=restricted');
  });
  afterAll(async () => {
    await namespace?.kubectl('delete', 'clusterrolebinding', namespace.name, '--ignore-not-found');
    await namespace?.[Symbol.asyncDispose]();
  });

  test.each([
    { args: ['registry'], exitCode: 1, text: /ROLLCALL_DATABASE_URL is required/ },
    { args: ['fetch', '--url=https://example.com/a'], exitCode: 2, text: /--checksum must be sha256/ },
    { args: ['gatekeeper'], exitCode: 2, text: /there is no process "gatekeeper"/ },
    { args: [], exitCode: 2, text: /which process\?/ },
  ])('says what $args lacks', async ({ args, exitCode, text }) => {
    const name = `ends-${args[0] ?? 'nothing'}`;
    await namespace.apply(pod(name, args, {}));
    const code = '--output=jsonpath={.status.containerStatuses[0].state.terminated.exitCode}';
    await expect.poll(() => namespace.kubectl('get', 'pod', name, code), POLL).toBe(String(exitCode));
    expect(await namespace.kubectl('logs', name)).toMatch(text);
  });

  test('runs the operator, which can write nothing, is nobody, and has no shell', async () => {
    await namespace.apply(
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: namespace.name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [{ kind: 'ServiceAccount', name: 'default', namespace: namespace.name }],
      },
      pod('operator', ['operator'], { readinessProbe: { httpGet: { path: '/readyz', port: 9090 }, periodSeconds: 1 } }),
    );
    await namespace.kubectl('wait', '--for=condition=Ready', 'pod/operator', '--timeout=120s');
    const found: unknown = JSON.parse(await namespace.kubectl('exec', 'operator', '--', 'node', '-e', INSPECTION));
    expect(found).toEqual({ uid: 65_532, gid: 65_532, capabilities: '0000000000000000', written: [] });
    await expect(namespace.kubectl('exec', 'operator', '--', 'sh', '-c', 'true')).rejects.toThrow(
      /not found|no such file/i,
    );
    const started = await namespace.kubectl('logs', 'operator');
    expect(started).toMatch(/"name":"operator"/);
    // Long before it would be killed.
    await namespace.kubectl('delete', 'pod', 'operator', '--timeout=120s');
  });
});

/** What a process in the image is, and where it can write; as a program for `node -e`. */
const INSPECTION = `
  const fs = require('node:fs');
  const written = ['/', '/app/', '/app/image/src/', '/tmp/', '/var/', '/usr/local/bin/'].filter((directory) => {
    try { fs.writeFileSync(directory + 'attempt', ''); return true; } catch { return false; }
  });
  const [, capabilities] = /^CapEff:\\t(.*)$/m.exec(fs.readFileSync('/proc/self/status', 'utf8'));
  console.log(JSON.stringify({ uid: process.getuid(), gid: process.getgid(), capabilities, written }));
`;

function pod(name: string, args: readonly string[], container: object): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 3600,
      securityContext: restricted.pod,
      containers: [
        {
          name: 'main',
          image: sharedCluster().rollcallImage,
          args,
          securityContext: restricted.container,
          ...container,
        },
      ],
    },
  };
}
