// Tables of many rows: a click on a heading sorts, words in the field keep the rows that have all of them. Without a
// script the table is there as it was written.
for (const box of document.querySelectorAll(".sortable")) {
  const body = box.querySelector("tbody");
  const rows = [...body.rows];
  // "9.604 k ± 3 %" is 9604: the prefixes of units are powers of ten. Text without a number sorts as text, after numbers.
  const powers = { p: -12, n: -9, "µ": -6, m: -3, k: 3, M: 6, G: 9, T: 12 };
  const key = (row, at) => {
    const text = row.cells[at].textContent.trim();
    const found = /^(-?\d[\d \u202f]*(?:\.\d+)?(?:e[+-]?\d+)?)(?: ?([pnµmkMGT])(?!in\b))?/.exec(text);
    if (!found) return [1, 0, text];
    return [0, Number(found[1].replace(/[ \u202f]/g, "")) * 10 ** (powers[found[2]] ?? 0), text];
  };
  const before = (a, b) => a[0] - b[0] || a[1] - b[1] || (a[2] < b[2] ? -1 : Number(a[2] > b[2]));
  const heads = [...box.querySelectorAll("thead th")];
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = rows.map((row) => [key(row, at), row]);
      keyed.sort((a, b) => (down ? before(b[0], a[0]) : before(a[0], b[0])));
      body.append(...keyed.map(([, row]) => row));
    });
  });
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "Words that a row must have";
  field.setAttribute("aria-label", field.placeholder);
  const shown = document.createElement("span");
  shown.setAttribute("role", "status");
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const texts = (row) => [...row.cells].map((cell) => cell.textContent.toLowerCase()).join(" ");
    rows.forEach((row) => { row.hidden = !words.every((word) => texts(row).includes(word)); });
    shown.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  });
  box.before(field, shown);
}
