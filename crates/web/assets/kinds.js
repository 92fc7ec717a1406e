// Everything that can be started, and what results are of: the only list of these names in the page.

/** `kind`: the value of the key `task`; `first`: the text that it begins with. A run needs no key `task`. */
export const KINDS = [
  { kind: 'run', name: 'run', first: 'target = "sim:nvme-tlc"\nworkload = "randread"\n' },
  { kind: 'pts', name: 'SNIA test', first: 'task = "pts"\ntarget = "sim:nvme-tlc"\nquick = true\n' },
  { kind: 'profile', name: 'profile', first: 'task = "profile"\ntarget = "sim:nvme-tlc"\n' },
  {
    kind: 'compare', name: 'comparison',
    first: 'task = "compare"\nsides = ["sim:nvme-tlc", "sim:config-a"]\n\n[run]\nworkload = "mixed"\nrequests = 20000\n',
  },
  {
    kind: 'sweep', name: 'sweep of designs',
    first: 'task = "sweep"\nvary = ["flash.channels=4,8", "ftl.over_provisioning=0.07,0.28"]\n\n[run]\ntarget = "sim:nvme-tlc"\nworkload = "randwrite"\nrequests = 20000\n',
  },
  {
    kind: 'plan', name: 'plan of many hosts',
    first: '[load]\ntarget = "sim:nvme-tlc"\nworkload = "randread"\nfor = "2s"\n\n[[clients]]\nhost = "127.0.0.1:7801"\nname = "a"\n\n'
      + '[[clients]]\nhost = "127.0.0.1:7802"\nname = "b"\n\n[[steps]]\nname = "a alone"\nclients = ["a"]\n\n[[steps]]\nname = "both"\n',
  },
  { kind: 'verify', name: 'verification', first: 'task = "verify"\ntarget = "/dev/nvme0n1"\n\n[write]\nallowed = true\n' },
  { kind: 'probe', name: 'samples of this machine', first: 'task = "probe"\ninterval = "1s"\nsamples = 10\n' },
];

/** Results that no task makes. */
const RESULTS = {
  comparison: 'comparison', repeat: 'repeated run', papers: 'papers', unfinished: 'no result', other: 'unknown',
};

export const kindOf = (kind) => KINDS.find((each) => each.kind === kind);

/** What a task or a result of this kind is called. */
export const nameOf = (kind) => kindOf(kind)?.name ?? RESULTS[kind] ?? '';
