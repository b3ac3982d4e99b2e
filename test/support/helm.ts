import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

export interface HelmTarget {
  /** Path of the executable. */
  readonly helm: string;
  /** The cluster; without one Helm has none to ask. */
  readonly kubeconfigPath?: string | undefined;
  /** Directory for what Helm keeps for itself. */
  readonly home: string;
}

/**
 * Runs Helm against one cluster only and returns what it prints.
 *
 * @param values of a chart, given as the last file of values.
 * @throws with what it says when it fails.
 */
export async function runHelm(
  { helm, kubeconfigPath, home }: HelmTarget,
  args: readonly string[],
  values?: object,
): Promise<string> {
  const child = spawn(helm, [...args, ...(values === undefined ? [] : ['--values', '-'])], {
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      KUBECONFIG: kubeconfigPath ?? '/dev/null',
      // It ends within a second: collecting garbage would be a third of its work.
      GOGC: '400',
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(values === undefined ? '' : JSON.stringify(values));
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  });
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (code !== 0) throw new Error(`helm ${args.join(' ')}: ${stderr.trim()}${stdout.trim()}`);
  return stdout;
}
