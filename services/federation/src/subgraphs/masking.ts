import type { Logger } from '@rollcall/platform/process/log.ts';
import { MOST_ERRORS } from '../execution/errors.ts';
import type { SubgraphAnswer } from '../execution/types.ts';

/** Of one answer that are logged. */
const MOST_CODES = 20;

/** What clients may see of an answer of a subgraph. Its errors are logged, without their words. */
export type Show = (subgraph: string, answer: SubgraphAnswer) => SubgraphAnswer;

/** @param areErrorsMasked whether clients do not get the messages of errors of subgraphs. */
export function createShow(areErrorsMasked: boolean, log: Logger): Show {
  return (subgraph, answer) => {
    if (!Array.isArray(answer.errors) || answer.errors.length === 0) return answer;
    const errors = maskedErrors(answer.errors);
    const codes = [...new Set(errors.map(({ extensions }) => extensions.code))].slice(0, MOST_CODES);
    log.warn({ subgraph, codes, count: answer.errors.length }, 'a subgraph answered with errors');
    return areErrorsMasked ? { ...answer, errors } : answer;
  };
}

/** An error of a subgraph as clients get it where its words are not for them. */
export interface MaskedError {
  readonly message: string;
  readonly path?: unknown;
  readonly extensions: { readonly code: string };
}

const CODE = /^[A-Z][A-Z0-9_]{0,63}$/;
const MESSAGE = 'The service could not answer this field';

/** Pure. The first errors without what people wrote of them: where they are, and their code where it is one. */
export function maskedErrors(errors: readonly unknown[]): readonly MaskedError[] {
  return errors.slice(0, MOST_ERRORS).map((error) => {
    const path = memberOf(error, 'path');
    const code = memberOf(memberOf(error, 'extensions'), 'code');
    return {
      message: MESSAGE,
      ...(Array.isArray(path) ? { path } : {}),
      extensions: { code: typeof code === 'string' && CODE.test(code) ? code : 'SUBGRAPH_ERROR' },
    };
  });
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
