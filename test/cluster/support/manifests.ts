/** A Deployment of the test program; see app/server.ts. */
export interface AppOptions {
  readonly name: string;
  readonly image: string;
  readonly replicas?: number;
  /** Labels of the Deployment itself. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

const PORT = 8080;
/** Seconds that a pod which gets SIGTERM goes on as before, until every node knows it. */
const LEAVE_SECONDS = 3;

export function appDeployment(options: AppOptions): object {
  const { name, image, replicas = 1, labels = {}, annotations = {}, env = {} } = options;
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels: { app: name, ...labels }, annotations },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          terminationGracePeriodSeconds: 20,
          containers: [
            {
              name: 'app',
              image,
              env: environment(env),
              ports: [{ name: 'http', containerPort: PORT }],
              readinessProbe: { httpGet: { path: '/healthz', port: PORT }, periodSeconds: 1, timeoutSeconds: 10 },
              lifecycle: { preStop: { sleep: { seconds: LEAVE_SECONDS } } },
            },
          ],
        },
      },
    },
  };
}

/** A Service in front of the pods of a Deployment. */
export function appService(name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { selector: { app: name }, ports: [{ name: 'http', port: 80, targetPort: PORT }] },
  };
}

export interface LoadOptions {
  readonly name: string;
  readonly image: string;
  /** URL that requests are sent to. */
  readonly target: string;
  /** Shown with every request. */
  readonly token?: string;
  readonly rate: number;
  readonly connections?: number;
  readonly requestsPerConnection?: number;
}

/** A pod with the client of app/load.ts, which begins as soon as it runs. */
export function loadPod(options: LoadOptions): object {
  const { name, image, target, token = '', rate, connections = 16, requestsPerConnection = 25 } = options;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'load',
          image,
          command: ['/bin/node', '/app/load.ts'],
          env: environment({
            TARGET: target,
            TOKEN: token,
            RATE: String(rate),
            CONNECTIONS: String(connections),
            REQUESTS_PER_CONNECTION: String(requestsPerConnection),
          }),
          readinessProbe: { httpGet: { path: '/report', port: PORT }, periodSeconds: 1, timeoutSeconds: 10 },
        },
      ],
    },
  };
}

function environment(values: Readonly<Record<string, string>>): object[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}
