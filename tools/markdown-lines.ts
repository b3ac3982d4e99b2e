// Checks Markdown: lines have at most 100 columns, and sentences at most 25 words. Rows of tables,
// code and lines with a URL may be longer; a piece of inline code counts as one word.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const COLUMNS = 100;
const WORDS = 25;

interface Finding {
  readonly line: number;
  readonly problem: string;
}

function longLines(lines: readonly string[]): Finding[] {
  return lines.flatMap((line, index) => {
    const isExempt = /^\s*\|/.test(line) || /https?:\/\//.test(line);
    return line.length > COLUMNS && !isExempt
      ? [{ line: index + 1, problem: `is longer than ${COLUMNS} columns` }]
      : [];
  });
}

/** Paragraphs and items of lists, each as one line; headings, tables and code are none. */
function paragraphs(lines: readonly string[]): { line: number; text: string }[] {
  const found: { line: number; text: string }[] = [];
  let isCode = false;
  let isOpen = false;
  for (const [index, line] of lines.entries()) {
    const isFence = /^\s*(```|~~~)/.test(line);
    if (isFence) isCode = !isCode;
    if (isFence || isCode || /^\s*($|[|#<])/.test(line)) {
      isOpen = false;
      continue;
    }
    const item = /^\s*(?:[-*]|\d+\.)\s+(.*)/.exec(line);
    const last = found.at(-1);
    if (item === null && isOpen && last !== undefined) last.text += ` ${line.trim()}`;
    else found.push({ line: index + 1, text: item?.[1] ?? line.trim() });
    isOpen = true;
  }
  return found;
}

function longSentences(lines: readonly string[]): Finding[] {
  return paragraphs(lines).flatMap(({ line, text }) => {
    const plain = text
      .replaceAll(/`[^`]*`/g, 'Code')
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replaceAll(/https?:\S+/g, 'Address');
    const sentences = plain.split(/(?<=[.!?][)"*]*)\s+(?=["'(*]*[\p{Lu}\d])/u);
    return sentences.flatMap((sentence) => {
      const words = sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
      return words > WORDS ? [{ line, problem: `has a sentence of ${words} words: ${sentence.slice(0, 60)}` }] : [];
    });
  });
}

const root = new URL('../', import.meta.url);
const tracked = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
let wrong = 0;
for (const file of tracked) {
  const lines = readFileSync(new URL(file, root), 'utf8').split('\n');
  for (const { line, problem } of [...longLines(lines), ...longSentences(lines)]) {
    console.log(`${file}:${line}: ${problem}`);
    wrong += 1;
  }
}
console.log(`${tracked.length} files checked`);
process.exitCode = wrong === 0 ? 0 : 1;
