// `npm run generate`: what the chart has from elsewhere. charts/rollcall/files/crds is a copy of
// crds/, because a packaged chart holds nothing from outside its folder; the README's table is made
// from the comments of values.yaml.
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml';

const crds = new URL('../crds/', import.meta.url);
const chart = new URL('../charts/rollcall/', import.meta.url);
const copies = new URL('files/crds/', chart);

/** Longer defaults are not repeated in the table. */
const LONGEST_DEFAULT = 80;
const MARK = '-- ';

interface Row {
  readonly key: string;
  readonly value: unknown;
  readonly description: string;
}

/**
 * The rows of the table: every value that has a comment with "--", and every other one below none
 * of those.
 */
export function documentedValues(values: string): Row[] {
  const { contents } = parseDocument(values);
  if (!isMap(contents)) throw new Error('values.yaml is no map');
  return rowsOf(contents, '');
}

function rowsOf(map: YAMLMap, prefix: string): Row[] {
  return map.items.flatMap((pair, index) => {
    const key = prefix + String(pair.key);
    const description = descriptionOf(pair, index === 0 ? map : undefined);
    const { value } = pair;
    if (!isMap(value) || value.items.length === 0) return [{ key, value: plain(value), description }];
    const below = rowsOf(value, `${key}.`);
    // A map that is explained as a whole is one row.
    if (description !== '' && below.every((row) => row.description === '')) {
      return [{ key, value: plain(value), description }];
    }
    return description === '' ? below : [{ key, value: undefined, description }, ...below];
  });
}

/** The comment above a key; that above the first key of a map is the map's own. */
function descriptionOf({ key }: Pair, first: YAMLMap | undefined): string {
  const comment = (isScalar(key) ? key.commentBefore : undefined) ?? first?.commentBefore ?? '';
  // What is before an empty line is about something else.
  const last = comment.split(/\n\s*\n/).at(-1) ?? '';
  const lines = last.split('\n').map((line) => line.trim());
  const start = lines.findIndex((line) => line.startsWith(MARK));
  return start === -1 ? '' : lines.slice(start).join(' ').slice(MARK.length);
}

function plain(node: unknown): unknown {
  return typeof node === 'object' && node !== null && 'toJSON' in node && typeof node.toJSON === 'function'
    ? node.toJSON()
    : node;
}

function defaultOf(value: unknown): string {
  if (value === undefined) return '';
  const text = JSON.stringify(value);
  return text.length > LONGEST_DEFAULT ? 'see values.yaml' : `\`${text.replaceAll('|', '\\|')}\``;
}

/** charts/rollcall/README.md. */
export function generateChartReadme(values: string): string {
  const rows = documentedValues(values).map(
    ({ key, value, description }) => `| \`${key}\` | ${defaultOf(value)} | ${description.replaceAll('|', '\\|')} |`,
  );
  return `# Helm chart of Rollcall

Generated from values.yaml by tools/chart.ts (\`npm run generate\`). Do not edit.

\`\`\`
helm install rollcall charts/rollcall --namespace rollcall --create-namespace \\
  --set image.repository=registry.example.com/rollcall
helm test rollcall --namespace rollcall
\`\`\`

Build the image and push it to your registry first. It needs Kubernetes 1.33 or newer, and Helm 3.14
or newer. Nothing else is needed: PostgreSQL and Redis are embedded, unless
\`postgresql.external\` and \`redis.external\` name others. [Operations](../../docs/operations.md) has
sizing, upgrades and uninstalling.

- With \`crds.install: false\` you upgrade the definitions before the chart. Processes of a new
  version write fields that old definitions drop. Run
  \`kubectl apply --server-side --filename charts/rollcall/files/crds\` from the new version.
- Argo CD, and other tools that render without a cluster, cannot see existing Secrets. Give them
  \`postgresql.existingSecret\` and \`redis.existingSecret\`, and \`external.secretName\` instead of
  a URL. Otherwise each rendering makes new passwords and restarts pods. Give them
  \`communication.vault.existingSecret\` and that of payment: new keys cannot open old data.
- Such tools cannot see the number of pods either. With autoscaling a process then has one pod until
  the autoscaler makes more.

| value | default | |
| --- | --- | --- |
${rows.join('\n')}
`;
}

/** The custom resource definitions by file name. */
export async function definitions(directory: URL): Promise<Map<string, string>> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.yaml')).toSorted();
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(new URL(name, directory), 'utf8')] as const)),
  );
}

async function generate(): Promise<void> {
  const values = await readFile(new URL('values.yaml', chart), 'utf8');
  await writeFile(new URL('README.md', chart), generateChartReadme(values));
  await rm(copies, { recursive: true, force: true });
  await mkdir(copies, { recursive: true });
  for (const [name, text] of await definitions(crds)) await writeFile(new URL(name, copies), text);
}

if (import.meta.main) await generate();
