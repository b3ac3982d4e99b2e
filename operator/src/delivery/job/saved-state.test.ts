import { annotations } from '@rollcall/crds/kinds.ts';
import { expect, test } from 'vitest';
import {
  buildCluster,
  buildDeployment,
  buildJob,
  buildSnapshot,
  buildTemplate,
  NEW,
  OLD,
  START,
} from '../testing/builders.ts';
import { writeMark } from '../workload/claim.ts';
import { templateFingerprint } from '../workload/fingerprint.ts';
import { reconstructState } from './saved-state.ts';

const [FORMER, DELIVERED] = [OLD, NEW].map((image) => templateFingerprint(buildTemplate(image)));
const AT = new Date(START).toISOString();

interface Row {
  readonly image: string;
  /** What the annotation on the Deployment says. */
  readonly annotated: string;
  /** The fingerprint in the status. */
  readonly known: string | undefined;
  readonly oldVersion?: string;
  /** Whether the Deployment is as the job's write of the template left it. */
  readonly marked?: boolean;
}

test.for<[string, Row, string | null]>([
  ['delivered', { image: NEW, annotated: '1.1.0', known: DELIVERED }, '1.1.0'],
  ['written by an operator that died then', { image: NEW, annotated: '1.1.0', known: FORMER, marked: true }, '1.1.0'],
  ['delivered, and undone by somebody else', { image: OLD, annotated: '1.1.0', known: DELIVERED }, null],
  ['delivered again', { image: OLD, annotated: '1.1.0', known: DELIVERED, oldVersion: '1.1.0' }, '1.1.0'],
  ['not delivered yet', { image: OLD, annotated: '1.0.9', known: FORMER }, '1.0.9'],
])('without its record, of a version that is %s: what the Deployment is said to have run', ([, row, expected]) => {
  const { image, annotated, known, oldVersion = '1.0.9', marked = false } = row;
  const job = buildJob({
    status: {
      phase: 'Progressing',
      stage: 'Updating',
      stageStartedAt: AT,
      startedAt: AT,
      oldVersion,
      ...(known === undefined ? {} : { templateFingerprint: known }),
    },
  });
  const mark = marked ? { [annotations.delivering]: writeMark(job, 1) } : {};
  const notes = { [annotations.version]: annotated, ...mark };
  const deployment = buildDeployment({ image, metadata: { annotations: notes } });
  const snapshot = buildSnapshot({ job, cluster: buildCluster({ deployment }) });
  expect(reconstructState(snapshot).deployment.version).toBe(expected);
});
