import { openHttpConnection } from './http-connection.ts';
import { runAtPace } from './pace.ts';
import { type HttpTask, instanceIdOf, type LoadResult, nameOf } from './tasks.ts';

/** Runs an {@link HttpTask}. */
export async function runHttpLoad(task: HttpTask): Promise<LoadResult> {
  const requests = Array.from({ length: task.names.count }, (_, index) => buildRequest(task, index));
  const connections = Array.from({ length: task.connections }, () => openHttpConnection(task.port));
  try {
    return await runAtPace(
      task.pace,
      connections.map((connection) => (index) => {
        const request = requests[index % requests.length];
        return request === undefined ? Promise.resolve('none') : connection.exchange(request);
      }),
    );
  } finally {
    for (const connection of connections) connection.close();
  }
}

function buildRequest(task: HttpTask, index: number): Buffer {
  const { port, method, names, inTurn = [] } = task;
  const name = nameOf(names, index);
  const own = inTurn[index % inTurn.length] ?? {};
  const path = (own.path ?? task.path).replaceAll('{name}', name);
  const content = (own.body ?? task.body ?? '').replaceAll('{name}', name);
  const lines = [`${method} ${path} HTTP/1.1`, `host: 127.0.0.1:${port}`];
  const headers = { ...task.headers, ...own.headers };
  for (const [header, value] of Object.entries(headers)) lines.push(`${header}: ${value}`);
  if (method === 'POST') {
    const id = instanceIdOf(names, index);
    if (id !== undefined) lines.push(`x-instance-id: ${id}`);
    lines.push(`content-length: ${Buffer.byteLength(content)}`);
  }
  if (content !== '') lines.push('content-type: application/json');
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${content}`);
}
