import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);

test('requests and responses stay fast when garbage is collected between the first of them', async () => {
  const script = join(import.meta.dirname, 'message-shapes-server.ts');
  const { stdout } = await run(process.execPath, ['--expose-gc', '--allow-natives-syntax', script]);
  expect(JSON.parse(stdout)).toEqual([true, true]);
});
