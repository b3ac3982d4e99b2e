const TOKEN_VOLUME = {
  name: 'rollcall-token',
  projected: { sources: [{ serviceAccountToken: { audience: 'rollcall', path: 'token' } }] },
};
const TOKEN_MOUNT = { name: TOKEN_VOLUME.name, mountPath: '/var/run/secrets/rollcall', readOnly: true };

interface RegisteringPodOptions {
  /** Of the pod, and of the service. */
  readonly name: string;
  readonly image: string;
  readonly registryUrl: string;
}

/** A pod with a container of Rollcall's image that registers it, as docs/services.md has it, and nothing else. */
export function registeringPod({ name, image, registryUrl }: RegisteringPodOptions): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      volumes: [TOKEN_VOLUME],
      containers: [
        {
          name: 'register',
          image,
          args: ['cli', 'run', `--name=${name}`, `--url=http://${name}.example:8080`],
          env: [{ name: 'ROLLCALL_SERVER', value: registryUrl }],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          volumeMounts: [TOKEN_MOUNT],
        },
      ],
    },
  };
}

/**
 * A pod with the program of app/member.ts, which registers its own address under its own name, with
 * the token that its volume brings.
 *
 * @param registryUrl of the registry.
 */
export function memberPod(name: string, image: string, registryUrl: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      restartPolicy: 'Never',
      // Otherwise the program would be the first process, which nobody in its container can kill.
      shareProcessNamespace: true,
      ...memberSpec({ name, image, registryUrl }),
    },
  };
}

/** Pods as {@link memberPod} has them, each of which is an instance of one service. */
export function memberDeployment(replicas: number, options: RegisteringPodOptions): object {
  const labels = { app: options.name };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: options.name },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: memberSpec(options) },
    },
  };
}

function memberSpec({ name, image, registryUrl }: RegisteringPodOptions): object {
  return {
    terminationGracePeriodSeconds: 20,
    volumes: [TOKEN_VOLUME],
    containers: [
      {
        name: 'member',
        image,
        command: ['/bin/node', '/app/member.ts'],
        env: [
          { name: 'SERVERS', value: registryUrl },
          { name: 'NAME', value: name },
          { name: 'ADDRESS', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
          { name: 'URL', value: 'http://$(ADDRESS):8080' },
        ],
        volumeMounts: [TOKEN_MOUNT],
        readinessProbe: { httpGet: { path: '/ready', port: 8080 }, periodSeconds: 1, timeoutSeconds: 10 },
      },
    ],
  };
}
