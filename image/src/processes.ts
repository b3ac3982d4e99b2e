/** A process of the image. */
interface Process {
  readonly about: string;
  /** Loads its main file, which runs it. */
  readonly start: () => Promise<unknown>;
  /** None by default: its settings are read from the environment. */
  readonly acceptsArguments?: boolean;
}

/**
 * By the argument that chooses them. Each is loaded alone: what the others need costs it nothing.
 */
const processes: ReadonlyMap<string, Process> = new Map<string, Process>(
  Object.entries<Process>({
    registry: {
      about: 'the HTTP API that services register with, and that pipelines call',
      start: () => import('@rollcall/registry/main.ts'),
    },
    gateway: {
      about: 'the one way in for API clients: tokens, limits, and the way to what is registered',
      start: () => import('@rollcall/gateway/main.ts'),
    },
    operator: {
      about: 'expires registrations, imports Services, delivers versions',
      start: () => import('@rollcall/operator/main.ts'),
    },
    communication: {
      about: 'sends mail, SMS and push messages, and says what became of them',
      start: () => import('@rollcall/communication/main.ts'),
    },
    payment: {
      about: 'payments and refunds by payment providers, subscriptions and invoices',
      start: () => import('@rollcall/payment/main.ts'),
    },
    federation: {
      about: 'one graph out of the GraphQL of the services that are registered',
      start: () => import('@rollcall/federation/main.ts'),
    },
    fetch: {
      about: 'brings a binary into a pod; deliveries write its command',
      start: () => import('@rollcall/fetcher/main.ts'),
      acceptsArguments: true,
    },
    cli: {
      about: 'the command line, also as a sidecar that keeps a pod registered: cli --help',
      start: () => {
        // It reads its arguments from where they are without an image, too.
        process.argv.splice(2, 1);
        return import('@rollcall/cli/main.ts');
      },
      acceptsArguments: true,
    },
  }),
);

const width = Math.max(...[...processes.keys()].map((name) => name.length));

export const usage = `Usage: rollcall PROCESS

${[...processes].map(([name, { about }]) => `  ${name.padEnd(width)}  ${about}`).join('\n')}

Settings are read from the environment; a process that lacks one names it.
`;

/** What to start, or what to say instead. */
export type Choice =
  | { readonly start: () => Promise<unknown> }
  | { readonly start?: never; readonly exitCode: 0; readonly text: string }
  | { readonly start?: never; readonly exitCode: 2; readonly text: string };

/** Chooses the process by the arguments of the container. */
export function chooseProcess([name, ...rest]: readonly string[]): Choice {
  if (name === '--help') return { exitCode: 0, text: usage };
  if (name === undefined) return { exitCode: 2, text: `rollcall: which process?\n\n${usage}` };
  const found = processes.get(name);
  if (found === undefined) return { exitCode: 2, text: `rollcall: there is no process "${name}"\n\n${usage}` };
  if (found.acceptsArguments !== true && rest.length > 0) {
    return { exitCode: 2, text: `rollcall: ${name} takes no arguments, its settings are read from the environment\n` };
  }
  return { start: found.start };
}
