import { annotations, finalizers } from '@rollcall/crds/kinds.ts';
import type { DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { STILL_TRIED } from '../job/failures.ts';
import { planJob } from '../job/plan.ts';
import type { ClusterView } from '../job/snapshot.ts';
import {
  buildAtStage,
  buildCluster,
  buildDeployment,
  buildJob,
  buildRoute,
  buildSnapshot,
  buildTemplate,
  CLAIM,
  NEW,
  OLD,
  pinnedTo,
  START,
  type StageWish,
  summarize,
} from '../testing/builders.ts';
import { claimInTheWay, claimOn, claimState, ownClaim, writeMark } from './claim.ts';
import { templateFingerprint } from './fingerprint.ts';

const EARLIER = 'default/deploy-shop/uid-job/2026-11-21T11:00:00.000Z';
const OTHER = 'default/deploy-cart/uid-cart/2026-11-21T11:00:00.000Z';

function claimedBy(claim: string, overrides: Partial<ClusterView> = {}, image = OLD): ClusterView {
  const metadata = { annotations: { [annotations.delivering]: claim } };
  return buildCluster({ ...overrides, deployment: buildDeployment({ image, metadata }) });
}

const job = buildJob({ status: { phase: 'Progressing', startedAt: new Date(START - 100_000).toISOString() } });

test.for<[string, string, 'own' | 'none' | 'other']>([
  ['its own', CLAIM, 'own'],
  ['its own, with the generation of its write', `${CLAIM}/7`, 'own'],
  ['its own of another pass', EARLIER, 'other'],
  ["another job's", OTHER, 'other'],
  ['nothing that could be one', 'uid-job/5', 'none'],
])('to a job, a claim is: %s', ([, claim, expected]) => {
  expect(claimState(claimedBy(claim), job)).toBe(expected);
  const isInTheWay = claimInTheWay(claimedBy(claim), job) !== undefined;
  expect(isInTheWay).toBe(expected === 'other');
});

test('a claim that nobody is behind any more is none; one that came after it is', () => {
  expect(claimState(claimedBy(OTHER, { abandonedClaim: OTHER }), job)).toBe('none');
  expect(claimState(claimedBy(OTHER, { abandonedClaim: `${OTHER}1` }), job)).toBe('other');
});

test('a claim says which job made it, and when that had left the queue', () => {
  expect(ownClaim(job)).toBe(CLAIM);
  expect(claimOn(claimedBy(writeMark(job, 7)).deployment)).toEqual({
    namespace: 'default',
    name: 'deploy-shop',
    uid: 'uid-job',
    startedAt: new Date(START - 100_000).toISOString(),
    text: CLAIM,
  });
});

const preparing = (wish: Partial<StageWish>) =>
  planJob(buildAtStage({ strategy: 'BlueGreen', stage: 'Preparing', snapshot: { saved: undefined }, ...wish }));
const claims = `patch Deployment shop {"metadata":{"annotations":{"${annotations.delivering}":"${CLAIM}"}}}`;
const unclaims = `patch Deployment shop {"metadata":{"annotations":{"${annotations.delivering}":null}}}`;

test.for<[string, Partial<StageWish>]>([
  ['before it saves anything', { isClaimed: false }],
  ['and replaces its own of an earlier pass', { cluster: claimedBy(EARLIER, { abandonedClaim: EARLIER }) }],
  ['and replaces one that nobody is behind any more', { cluster: claimedBy(OTHER, { abandonedClaim: OTHER }) }],
  ['also when it has lost it since', { isClaimed: false, snapshot: {} }],
])('a job that prepares claims the Deployment, %s', ([, wish]) => {
  const { changes } = preparing(wish);
  expect(summarize({ changes }).does).toEqual([claims]);
  expect(changes[0]).toMatchObject({ object: { metadata: { uid: 'uid-shop', resourceVersion: '10' } } });
});

test('a job waits for another that has claimed its Deployment, and gives up at the deadline', () => {
  // How the other has left things for now is no reason to fail.
  const cluster = claimedBy(OTHER, { services: [pinnedTo('old')] });
  const waiting = preparing({ cluster });
  expect(summarize(waiting)).toMatchObject({ status: { stage: 'Preparing' }, does: [] });
  expect(waiting.changes[0]).toMatchObject({
    status: { message: 'Waits: job default/deploy-cart delivers to Deployment shop' },
  });
  expect(waiting.requeueAfterMs).toBe(5000);
  const late = summarize(preparing({ cluster, seconds: 600 }));
  expect(late.status).toMatchObject({ phase: 'Failed', failure: { reason: 'WorkloadClaimed' } });
  const foreign = preparing({ cluster: claimedBy(OTHER.replace('default', 'elsewhere')), seconds: 600 });
  expect(summarize(foreign).status.failure?.message).toMatch(
    /^job elsewhere\/deploy-cart delivers to Deployment shop \(if nothing runs that job, remove the annotation rollcall.dev\/delivering\), after/,
  );
  const calm = summarize(preparing({ cluster: buildCluster({ services: [pinnedTo('old')] }) }));
  expect(calm.status).toMatchObject({ failure: { reason: 'StrategyNotSupported' } });
});

test('a job from whose Deployment somebody has removed the claim writes nothing but that, until it has it again', () => {
  const wish: StageWish = { strategy: 'BlueGreen', stage: 'Pinning', isClaimed: false };
  expect(summarize(planJob(buildAtStage(wish))).does).toEqual([claims]);
  expect(summarize(planJob(buildAtStage({ ...wish, isClaimed: true }))).does).toEqual([
    'patch Service shop {"spec":{"selector":{"pod-template-hash":"old"}}}',
  ]);
  // On the way back nothing waits for it.
  const back = summarize(planJob(buildAtStage({ ...wish, spec: { abort: true } })));
  expect(back.does.at(-1)).toBe(
    `patch Deployment shop {"metadata":{"annotations":{"${annotations.delivering}":"${CLAIM}","${annotations.rollingBack}":"uid-job"}}}`,
  );
});

/** A job that has been at a gate for long, and whose claim is gone. */
function atGate(missedForSeconds: number | undefined) {
  const lastTransitionTime = new Date(START - (missedForSeconds ?? 0) * 1000).toISOString();
  const missed = { type: 'ClaimHeld', status: 'False', reason: 'r', message: 'm', lastTransitionTime } as const;
  const status = missedForSeconds === undefined ? {} : { conditions: [missed] };
  const wish: StageWish = { strategy: 'BlueGreen', stage: 'Gate', seconds: 100_000, isClaimed: false, status };
  return summarize(planJob(buildAtStage(wish)));
}

test.for([undefined, 599])('however long a stage has lasted, a claim missed for %s s is made again', (seconds) => {
  expect(atGate(seconds)).toMatchObject({ status: { phase: 'Paused', stage: 'Gate' }, does: [claims] });
});

test('a job that cannot make its claim again within the deadline is undone', () => {
  const failure = { reason: 'ProgressDeadlineExceeded' };
  expect(atGate(600).status).toMatchObject({ stage: 'Reverting', failure });
});

test('a job whose Deployment somebody has given to another is undone, and leaves the Deployment alone', () => {
  const cluster = claimedBy(OTHER, { services: [pinnedTo('old')] }, NEW);
  const recorded = { templateFingerprint: templateFingerprint(buildTemplate(NEW)) };
  const lost = summarize(
    planJob(buildAtStage({ strategy: 'BlueGreen', stage: 'HandingBack', cluster, status: recorded })),
  );
  expect(lost.status).toMatchObject({ stage: 'Reverting', failure: { reason: 'ChangedFromOutside' } });
  expect(lost.does.filter((text) => text.includes('Deployment shop '))).toEqual([]);
  const status = { ...recorded, failure: { reason: 'ChangedFromOutside', message: 'm' } };
  for (const stage of ['Reverting', 'Restoring', 'Finishing']) {
    const { does } = summarize(planJob(buildAtStage({ strategy: 'BlueGreen', stage, cluster, status })));
    expect(does.filter((text) => text.includes('Deployment shop '))).toEqual([]);
  }
});

test('a job whose Deployment somebody has given to another still releases what it has marked, and nothing else', () => {
  const rules = [{ backendRefs: [{ name: 'shop' }] }];
  const failure = { reason: 'ChangedFromOutside', message: 'm' };
  const finishing = (uid: string | undefined) => {
    const annotated = uid === undefined ? {} : { annotations: { [annotations.rollingBack]: uid } };
    const [service, route] = [pinnedTo('old'), buildRoute(rules)];
    const services = [{ ...service, metadata: { ...service.metadata, ...annotated } }];
    const routes = [{ ...route, metadata: { ...route.metadata, ...annotated } }];
    return summarize(
      planJob(
        buildAtStage({
          strategy: 'Canary',
          stage: 'Finishing',
          cluster: claimedBy(OTHER, { services, routes }),
          saved: { routes: [{ name: 'shop', rules }] },
          status: { failure },
        }),
      ),
    );
  };
  const unmarks = `{"metadata":{"annotations":{"${annotations.rollingBack}":null}}`;
  expect(finishing('uid-job').does).toEqual([
    `patch Service shop ${unmarks},"spec":{"selector":{"pod-template-hash":null}}}`,
    `patch HTTPRoute shop ${unmarks}}`,
  ]);
  for (const uid of ['uid-cart', undefined]) {
    expect(finishing(uid)).toMatchObject({ status: { phase: 'Failed', failure }, does: [] });
  }
});

test('the claim is given back last, and what comes after it is the affair of the next job', () => {
  const wish: StageWish = { strategy: 'BlueGreen', stage: 'Finishing', status: { weight: 100 } };
  const unpins = 'patch Service shop {"spec":{"selector":{"pod-template-hash":null}}}';
  const pinned = buildCluster({ services: [pinnedTo('old')] });
  expect(summarize(planJob(buildAtStage({ ...wish, cluster: pinned }))).does).toEqual([unpins]);
  expect(summarize(planJob(buildAtStage({ ...wish, cluster: pinned, isClaimed: false }))).does).toEqual([claims]);
  expect(summarize(planJob(buildAtStage(wish))).does).toEqual([unclaims]);
  const next = claimedBy(OTHER, { services: [pinnedTo('old')] }, 'x:1');
  expect(summarize(planJob(buildAtStage({ ...wish, cluster: next })))).toMatchObject({
    status: { phase: 'Succeeded' },
    does: [],
  });
});

const letsGo = `patch DeliveryJob deploy-shop {"metadata":{"finalizers":["${finalizers.history}"]}}`;

test('a job that was given up after it had returned to the queue removes the claim of any pass', () => {
  const status = { phase: 'RolledBack', stage: 'RolledBack', failure: { reason: 'Cancelled', message: 'm' } } as const;
  const job = buildJob({ status });
  const at = (claim: string) => summarize(planJob(buildSnapshot({ job, cluster: claimedBy(claim) }))).does;
  expect(at(CLAIM)).toEqual([unclaims]);
  expect(at(EARLIER)).toEqual([unclaims]);
  expect(at(OTHER)).toEqual([letsGo]);
});

test('a job that has ended while it prepared removes its claim', () => {
  const status: Partial<DeliveryJobStatus> = { phase: 'RolledBack', failure: { reason: 'Aborted', message: 'm' } };
  const wish: StageWish = { strategy: 'Rolling', stage: 'RolledBack', status, snapshot: { saved: undefined } };
  expect(summarize(planJob(buildAtStage(wish))).does).toEqual([unclaims]);
  expect(summarize(planJob(buildAtStage({ ...wish, isClaimed: false }))).does).toEqual([letsGo]);
  expect(summarize(planJob(buildAtStage({ ...wish, cluster: claimedBy(OTHER) }))).does).toEqual([letsGo]);
});

/** The API server refused to give the old template back, to the deadline. */
const incomplete: Partial<DeliveryJobStatus> = {
  failure: { reason: 'RollbackIncomplete', message: 'm' },
  templateFingerprint: templateFingerprint(buildTemplate(NEW)),
};
const restores = 'patch Deployment shop {"spec":{"template":{"spec":{"containers":[{"name":"shop","image":"';

test.for<[string, Partial<StageWish>, string[]]>([
  ['is tried again', { cluster: claimedBy(CLAIM, {}, NEW) }, [`${restores}${OLD}"}]}}}}`]],
  ['once claimed is the end', { cluster: claimedBy(CLAIM) }, [unclaims]],
  ['is given up where another job has the Deployment', { cluster: claimedBy(OTHER, {}, NEW) }, []],
  [
    'is given up where another job has had the Deployment',
    { cluster: buildCluster({ deployment: buildDeployment({ image: NEW }) }), isClaimed: false },
    [letsGo],
  ],
  ['is given up where a user wants yet another', { cluster: claimedBy(CLAIM, {}, 'x:1') }, [unclaims]],
])('of an ended job, a template that could not be given back %s', ([, wish, expected]) => {
  const status = { ...incomplete, phase: 'Failed' } as const;
  const ended = planJob(buildAtStage({ strategy: 'Rolling', stage: 'Failed', status, ...wish }));
  expect(summarize(ended).does).toEqual(expected);
});

test('an ended job that has to leave the Deployment to another observes again, for what it still has to give back', () => {
  const status = { ...incomplete, phase: 'Failed' } as const;
  const wish: StageWish = { strategy: 'Rolling', stage: 'Failed', status, cluster: claimedBy(OTHER, {}, NEW) };
  expect(planJob(buildAtStage(wish))).toEqual({ changes: [], requeueAfterMs: 10_000 });
});

test('a job that could not give the template back keeps its claim, gives the rest back and says what to do', () => {
  const rolling = { type: 'RollingUpdate', rollingUpdate: { maxSurge: '100%', maxUnavailable: 0 } } as const;
  const metadata = { annotations: { [annotations.delivering]: CLAIM } };
  const cluster = buildCluster({
    deployment: buildDeployment({ image: NEW, metadata, spec: { strategy: rolling, template: buildTemplate(NEW) } }),
  });
  const wish: StageWish = { strategy: 'Rolling', stage: 'Finishing', cluster, status: incomplete };
  expect(summarize(planJob(buildAtStage(wish))).does).toEqual([
    'patch Deployment shop {"spec":{"strategy":{"rollingUpdate":{"maxSurge":"50%","maxUnavailable":"10%"}}}}',
  ]);
  const rest = summarize(planJob(buildAtStage({ ...wish, cluster: claimedBy(CLAIM, {}, NEW) })));
  expect(rest).toMatchObject({ status: { phase: 'Failed', failure: incomplete.failure }, does: [] });
  const aborted = { ...incomplete, failure: { reason: 'Aborted', message: 'The job was aborted' } };
  const late = summarize(planJob(buildAtStage({ ...wish, stage: 'Restoring', seconds: 600, status: aborted })));
  expect(late.status.failure).toEqual({
    reason: 'RollbackIncomplete',
    message: `The job was aborted; ${STILL_TRIED}`,
  });
});
