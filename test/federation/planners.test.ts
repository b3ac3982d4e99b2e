import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { compose } from '@rollcall/federation/composition/compose.ts';
import { PlanLimitError } from '@rollcall/federation/execution/planner.ts';
import { plannerSource } from '@rollcall/federation/execution/planner-source.ts';
import { createPlanners, type Planner, type Planners } from '@rollcall/federation/planning/planners.ts';
import { expect, onTestFinished, test } from 'vitest';

const QUERY = '{ users { name } }';

function sourceOf(types = 0): string {
  const more = Array.from({ length: types }, (_, n) => `type T${n} { id: ID name: String }`).join(' ');
  const sdl = `type Query { users: [User] } type User { name: String } ${more}`;
  const { supergraph = '' } = compose([{ name: 'users', url: 'http://users', sdl }]);
  return plannerSource(supergraph).sdl;
}

/** @param lost gets why processes were lost. */
function start(lost: string[] = []): Planners {
  const planners = createPlanners((reason) => void lost.push(reason));
  onTestFinished(() => planners.stop());
  return planners;
}

const question = (query: string) => ({ query, operationName: undefined, place: 0 });
const plan = ({ ask }: Planner) => ask(question(QUERY));

/** Processes of planners that this test has. */
function watchProcesses(): () => readonly number[] {
  const before = new Set(processes());
  return () => processes().filter((pid) => !before.has(pid));
}

/** To signal the process 0 would be to signal this one, and all it belongs with. */
async function onlyOf(running: () => readonly number[]): Promise<number> {
  let pid = Number.NaN;
  await expect
    .poll(() => {
      const pids = running();
      [pid = Number.NaN] = pids;
      return pids;
    })
    .toEqual([expect.any(Number)]);
  return pid;
}

function processes(): readonly number[] {
  return readdirSync(`/proc/${process.pid}/task`)
    .flatMap((thread) => textOf(`/proc/${process.pid}/task/${thread}/children`).split(' '))
    .filter((pid) => pid !== '' && textOf(`/proc/${pid}/cmdline`).includes('planner-process'))
    .map(Number);
}

/** Empty for a process or thread that has just ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

test('small graphs share a process, which gets nothing of the environment', async () => {
  const running = watchProcesses();
  const planners = start();
  const [first, second] = await Promise.all([planners.load(sourceOf()), planners.load(sourceOf(1))]);
  expect((await plan(first)).node).toMatchObject({ kind: 'Fetch', serviceName: 'users' });
  await expect(second.ask(question('{ nothing }'))).rejects.toThrow('nothing');
  const pid = await onlyOf(running);
  expect(textOf(`/proc/${pid}/environ`)).not.toContain('PATH=');
  await planners.stop();
  await expect.poll(running).toEqual([]);
  await expect(plan(first)).rejects.toThrow(/ended|stopped/);
});

test('what is no supergraph is refused, and the others go on', async () => {
  const planners = start();
  const good = await planners.load(sourceOf());
  for (const sdl of ['type', '{', 'x'.repeat(1000)]) await expect(planners.load(sdl)).rejects.toThrow(/./);
  expect((await plan(good)).kind).toBe('QueryPlan');
});

test('a process that is killed is replaced, and who waits gets the plan', async () => {
  const running = watchProcesses();
  const lost: string[] = [];
  const planners = start(lost);
  const large = await planners.load(sourceOf(3000));
  const pid = await onlyOf(running);
  const planned = Promise.all(Array.from({ length: 20 }, () => plan(large)));
  process.kill(pid, 'SIGKILL');
  for (const { kind } of await planned) expect(kind).toBe('QueryPlan');
  expect(await onlyOf(running)).not.toBe(pid);
  await planners.stop();
  await expect.poll(running).toEqual([]);
  expect(lost).toEqual(['lost']);
});

/** Services of which each knows a part of an interface: to plan what is deep in it is too much for the planner. */
function interfaceOf(types: number): string {
  const all = Array.from({ length: types }, (_, n) => n);
  const subgraphs = ['a', 'b', 'c', 'd', 'e'].map((name, index) => {
    const more = index === 0 ? 'next: Node' : '';
    const sdl = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
      ${index === 0 ? 'type Query { node: Node }' : ''} interface Node { id: ID! ${name}: String ${more} }
      ${all.map((n) => `type T${n} implements Node @key(fields: "id") { id: ID! ${name}: String ${more} }`).join(' ')}`;
    return { name, url: `http://${name}`, sdl };
  });
  return plannerSource(compose(subgraphs).supergraph ?? '').sdl;
}

test.each([
  ['time', 2, 'b'],
  ['memory', 10, 'id'],
])('a plan that takes too much %s ends with its process, and those of others are made', async (_, depth, field) => {
  const running = watchProcesses();
  const lost: string[] = [];
  const planner = await start(lost).load(interfaceOf(20));
  const pid = await onlyOf(running);
  const bomb = planner.ask(question(`{ node { ${'next { '.repeat(depth)} ${field} ${'} '.repeat(depth)} } }`));
  const usual = () => planner.ask(question('{ node { id } }'));
  const others = [usual(), usual()];
  await expect(bomb).rejects.toBeInstanceOf(PlanLimitError);
  for (const { kind } of [...(await Promise.all(others)), await usual()]) expect(kind).toBe('QueryPlan');
  expect(running()).not.toContain(pid);
  expect(lost).toEqual(['limit']);
});

test('a large graph has a process of its own, which ends with it', async () => {
  const running = watchProcesses();
  const planners = start();
  const small = await planners.load(sourceOf());
  const first = await onlyOf(running);
  const large = await planners.load(sourceOf(6000));
  expect(running()).toHaveLength(2);
  const next = await planners.load(sourceOf());
  large.close();
  small.close();
  await expect.poll(running).toHaveLength(1);
  expect(running()).not.toContain(first);
  // Who holds a graph that is not in force any more goes on with it.
  expect((await plan(large)).kind).toBe('QueryPlan');
  expect((await plan(next)).kind).toBe('QueryPlan');
  next.close();
  await expect.poll(running).toHaveLength(1);
});

test('a process that was prepared is the one that is used', async () => {
  const running = watchProcesses();
  const planners = start();
  const sdl = sourceOf();
  for (let times = 0; times < 2; times += 1) planners.prepare(sdl.length);
  const prepared = await onlyOf(running);
  const small = await planners.load(sdl);
  planners.prepare(sdl.length);
  expect((await plan(small)).kind).toBe('QueryPlan');
  expect(running()).toEqual([prepared]);
  planners.prepare(1_000_000);
  await expect.poll(running).toHaveLength(2);
  await planners.stop();
  await expect.poll(running).toHaveLength(0);
});

test('it ends with the process that has begun it, however that ends', async () => {
  const module = fileURLToPath(import.meta.resolve('@rollcall/federation/planning/planners.ts'));
  const program = `import { createPlanners } from ${JSON.stringify(module)};
    const sdl = process.env['SDL'] ?? '';
    await createPlanners(() => {}).load(sdl);
    console.log('loaded');
    setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    env: { SDL: sourceOf() },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void parent.kill('SIGKILL'));
  await once(parent.stdout, 'data');
  const [child = ''] = textOf(`/proc/${parent.pid}/task/${parent.pid}/children`).split(' ');
  expect(textOf(`/proc/${child}/cmdline`)).toContain('planner-process');
  parent.kill('SIGKILL');
  await expect.poll(() => textOf(`/proc/${child}/cmdline`)).not.toContain('planner-process');
});
