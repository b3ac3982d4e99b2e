// `npm run pack:client`: @rollcall/client as a file that `npm install` takes, with JavaScript and
// declarations in place of TypeScript, which Node does not run in packages.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import manifest from '../clients/typescript/package.json' with { type: 'json' };

const source = join(import.meta.dirname, '..', 'clients', 'typescript');
const directory = mkdtempSync(join(tmpdir(), 'rollcall-client-'));
try {
  execFileSync('tsc', ['--project', source, '--outDir', join(directory, 'src')], { stdio: 'inherit' });
  const exports = { './*.ts': { types: './src/*.d.ts', default: './src/*.js' } };
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ ...manifest, exports }, undefined, 2));
  cpSync(join(source, 'README.md'), join(directory, 'README.md'));
  execFileSync('npm', ['pack', directory, ...process.argv.slice(2)], { stdio: 'inherit' });
} finally {
  rmSync(directory, { recursive: true });
}
