import { isFinished } from '@rollcall/client/job-record.ts';
import type { JobRecord } from '@rollcall/client/job-types.ts';
import type { CliDeps } from './deps.ts';
import { formatLiveLine, formatProgress } from './output/jobs.ts';

/** Shows how a job gets on. */
export interface ProgressDisplay {
  show(job: JobRecord): void;
  /** Says something else without spoiling the display. */
  note(message: string): void;
  /** Nothing more comes. */
  close(): void;
}

const CLEAR_LINE = '\r\u001b[2K';
const TICK_MS = 1000;

/**
 * `-o json`: one JSON object a line, on standard output. Otherwise on standard error, so that
 * standard output holds the job's id alone: one live line on a terminal, elsewhere a line for every
 * change.
 */
export function createProgressDisplay(deps: CliDeps, { json }: { readonly json: boolean }): ProgressDisplay {
  if (json) return jsonLines(deps);
  return deps.terminalColumns() === undefined ? logLines(deps) : liveLine(deps);
}

function jsonLines({ out, err }: CliDeps): ProgressDisplay {
  return {
    show: (job) => out(`${JSON.stringify(job)}\n`),
    note: (message) => err(`rollcall: ${message}\n`),
    close: () => undefined,
  };
}

function logLines({ err, now }: CliDeps): ProgressDisplay {
  let last = '';
  return {
    show(job) {
      const content = formatProgress(job, '');
      if (content !== last) err(formatProgress(job, now().toTimeString().slice(0, 8)));
      last = content;
    },
    note: (message) => err(`rollcall: ${message}\n`),
    close: () => undefined,
  };
}

function liveLine({ err, now, terminalColumns }: CliDeps): ProgressDisplay {
  let shown: JobRecord | undefined;
  const draw = () => {
    if (shown === undefined) return;
    err(
      `${CLEAR_LINE}${formatLiveLine(shown, { now: now(), columns: terminalColumns() ?? Number.POSITIVE_INFINITY })}`,
    );
  };
  const clear = () => {
    if (shown !== undefined) err(CLEAR_LINE);
  };
  // The time goes on where nothing else does.
  const ticks = setInterval(draw, TICK_MS);
  return {
    show(job) {
      if (isFinished(job)) clear();
      shown = isFinished(job) ? undefined : job;
      draw();
    },
    note(message) {
      clear();
      err(`rollcall: ${message}\n`);
      draw();
    },
    close() {
      clearInterval(ticks);
      clear();
      shown = undefined;
    },
  };
}
