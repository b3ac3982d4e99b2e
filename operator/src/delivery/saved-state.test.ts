import { annotations } from '@rollcall/crds/kinds.ts';
import { expect, test } from 'vitest';
import { templateFingerprint } from './fingerprint.ts';
import {
  buildCluster,
  buildDeployment,
  buildJob,
  buildSnapshot,
  buildTemplate,
  NEW,
  OLD,
  START,
} from './model/build.ts';
import { reconstructState } from './saved-state.ts';

test.for<[string, string, string, string | undefined, string | null]>([
  ['delivered', NEW, '1.1.0', templateFingerprint(buildTemplate(NEW)), '1.1.0'],
  ['perhaps not delivered yet', NEW, '1.1.0', undefined, '1.1.0'],
  ['delivered and undone by somebody else', OLD, '1.1.0', templateFingerprint(buildTemplate(NEW)), null],
  ['in the way of another version', OLD, '1.0.9', templateFingerprint(buildTemplate(NEW)), '1.0.9'],
])(
  'without its record, of a version that is %s: what the Deployment is said to have run',
  ([, image, told, delivered, expected]) => {
    const deployment = buildDeployment({ image, metadata: { annotations: { [annotations.version]: told } } });
    const status = { phase: 'Progressing', stage: 'Updating', stageStartedAt: new Date(START).toISOString() } as const;
    const job = buildJob({
      status: { ...status, ...(delivered === undefined ? {} : { templateFingerprint: delivered }) },
    });
    const snapshot = buildSnapshot({ job, cluster: buildCluster({ deployment }) });
    expect(reconstructState(snapshot).deployment.version).toBe(expected);
  },
);
