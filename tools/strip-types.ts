// `node tools/strip-types.ts DIRECTORY ...`: makes JavaScript of the TypeScript in directories, in place: types become blanks, so that
// every line and column stays where it was. The names of the files stay, too: see image/src/stripped-sources.ts.
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';

for (const directory of process.argv.slice(2)) {
  for (const path of globSync('**/*.ts', { cwd: directory, exclude: ['**/node_modules'] })) {
    const file = join(directory, path);
    writeFileSync(file, stripTypeScriptTypes(readFileSync(file, 'utf8')));
  }
}
