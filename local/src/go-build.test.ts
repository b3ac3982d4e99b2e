import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { findExecutable } from './executables.ts';
import { ensureBuilt } from './go-build.ts';

const HASH = 'h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=';

test.skipIf((await findExecutable('go')) === undefined)(
  'a module that does not come is asked for again, and in the end the reason is reported',
  { timeout: 60_000 },
  async () => {
    const asked: string[] = [];
    const proxy = createServer((request) => {
      asked.push(request.url ?? '');
      request.socket.resetAndDestroy();
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void proxy.close());
    const source = await mkdtemp(join(tmpdir(), 'rollcall-go-build-'));
    onTestFinished(() => rm(source, { recursive: true }));
    await writeFile(
      join(source, 'go.mod'),
      'module example.test/own\n\ngo 1.21\n\nrequire example.test/other v1.0.0\n',
    );
    await writeFile(
      join(source, 'go.sum'),
      `example.test/other v1.0.0 ${HASH}\nexample.test/other v1.0.0/go.mod ${HASH}\n`,
    );
    vi.stubEnv('GOPROXY', `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
    vi.stubEnv('GONOSUMDB', 'example.test');
    onTestFinished(() => void vi.unstubAllEnvs());
    const lines: string[] = [];
    const building = ensureBuilt(
      {
        title: 'test',
        purpose: 'The test needs a program',
        instead: 'do without',
        source,
        directory: join(source, 'built'),
        packages: { program: 'example.test/other' },
        linkerFlags: '',
      },
      { log: (line) => lines.push(line) },
    );
    await expect(building).rejects.toThrow(/example\.test\/other.*(reset|EOF)/s);
    expect(lines.filter((line) => line.includes('trying once more'))).toHaveLength(3);
    expect(asked.length).toBeGreaterThanOrEqual(4);
  },
);
