// What a person asks of the open execution: one place, so that every button says the same when it is refused.
import { Problem, steer, type Wish } from "../api/client";
import { useLive } from "../state/live";
import { useUi } from "../state/ui";

const DONE: Partial<Record<Wish, string>> = {
  pause: "Paused at the next boundary.",
  step: "One step, then it is held.",
  resume: "It goes on.",
  retry: "It is tried again.",
  cancel: "It is being stopped.",
  answer: "Answered.",
  approve: "Approved.",
  reject: "Rejected, with your reason.",
  extend: "Retuned.",
  plan: "Another plan.",
  compact: "Compacted at the next boundary.",
  leases: "What it may touch is changed.",
  pins: "Pinned.",
  forks: "Forked.",
};

/** The execution's id where it was taken, else nothing. A stale wish (409) reads the newest state and says so. */
export async function act(wish: Wish, more: Record<string, unknown> = {}): Promise<string> {
  const { id, events, detail, refresh } = useLive.getState();
  const { toast } = useUi.getState();
  const seen = Math.max(events.at(-1)?.seq ?? 0, detail?.head ?? 0);
  try {
    const granted = await steer(id, wish, seen, more);
    toast("you", granted.given ? `${DONE[wish] ?? "Marked."} The process that runs it takes it at its next boundary.` : (DONE[wish] ?? "Marked, as your word."));
    await refresh();
    return granted.execution_id;
  } catch (error) {
    const problem = error as Problem;
    toast("bad", problem.message);
    if (problem.status === 409 || problem.status === 404) await refresh(); // somebody was quicker, or has deleted it
    return "";
  }
}
