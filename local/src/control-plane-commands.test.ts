import { expect, test } from 'vitest';
import { type CommandContext, componentArguments } from './control-plane-commands.ts';

const context: CommandContext = {
  directory: '/work',
  ports: { etcd: 1, etcdPeer: 2, apiServer: 3 },
  certificates: {
    ca: 'ca.crt',
    serverCertificate: 'server.crt',
    serverKey: 'server.key',
    admin: { ca: 'ca.crt', certificate: 'admin.crt', key: 'admin.key' },
    serviceAccountPrivateKey: 'sa.key',
    serviceAccountPublicKey: 'sa.pub',
  },
  tokenAuthFile: '/control-plane/service-account/tokens.csv',
  kubeconfigPath: 'kubeconfig',
  stagesPath: 'stages.yaml',
};

const argumentsOf = Object.entries(componentArguments).map(([name, build]) => ({ name, args: build(context) }));

test.each(argumentsOf)('$name uses loopback addresses only', ({ args }) => {
  const hosts = args
    .flatMap((arg) => [...arg.matchAll(/(?:https?:\/\/|address=|node-ip=)([^:/,]+)/g)])
    .map((m) => m[1]);
  const clusterNames = ['kubernetes.default.svc.cluster.local'];
  expect(hosts.filter((host) => host !== '127.0.0.1' && !clusterNames.includes(host ?? ''))).toEqual([]);
});

test('etcd and the API server say where they listen; the others do not listen', () => {
  const args = new Map(argumentsOf.map((component) => [component.name, component.args]));
  expect(args.get('etcd')).toContain('--listen-client-urls=http://127.0.0.1:1');
  expect(args.get('kube-apiserver')).toContain('--bind-address=127.0.0.1');
  expect(args.get('kube-controller-manager')).toContain('--secure-port=0');
  expect(args.get('kube-scheduler')).toContain('--secure-port=0');
});
