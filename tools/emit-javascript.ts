// `node tools/emit-javascript.ts DIRECTORY ...`: replaces the TypeScript files of packages by
// JavaScript. Types become blanks, so that every line and column stays where it was. Relative
// imports and URLs, and `exports`, name the new files.
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';

const RELATIVE_NAME = /\b(from |import |import\(|new URL\()'(\.{1,2}\/[^'\n]+)\.ts'/g;
const EXPORTED_FILE = /("\.\/[^"\n]*": *"[^"\n]+)\.ts"/g;

for (const directory of process.argv.slice(2)) {
  const find = (pattern: string): string[] =>
    globSync(pattern, { cwd: directory, exclude: ['**/node_modules'] }).map((path) => join(directory, path));
  for (const file of find('**/*.ts')) {
    const script = stripTypeScriptTypes(readFileSync(file, 'utf8'));
    writeFileSync(file.replace(/\.ts$/, '.js'), script.replace(RELATIVE_NAME, "$1'$2.js'"));
    rmSync(file);
  }
  for (const file of find('**/package.json')) {
    writeFileSync(file, readFileSync(file, 'utf8').replace(EXPORTED_FILE, '$1.js"'));
  }
}
