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
      terminationGracePeriodSeconds: 20,
      volumes: [
        {
          name: 'rollcall-token',
          projected: { sources: [{ serviceAccountToken: { audience: 'rollcall', path: 'token' } }] },
        },
      ],
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
          volumeMounts: [{ name: 'rollcall-token', mountPath: '/var/run/secrets/rollcall', readOnly: true }],
          readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1, timeoutSeconds: 10 },
        },
      ],
    },
  };
}
