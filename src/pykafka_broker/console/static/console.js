// Live numbers and new records of a page; everything else works without scripts.
"use strict";

const MOST_NUMBERS = 150;
const MOST_ROWS = 200;

function draw(element, numbers) {
  const line = element.querySelector("polyline");
  const { width, height } = element.querySelector("svg").viewBox.baseVal;
  const most = Math.max(1, ...numbers);
  const step = width / Math.max(1, numbers.length - 1);
  line.setAttribute("points", numbers.map((n, at) => `${at * step},${height - 1 - (n / most) * (height - 2)}`).join(" "));
}

const courses = new Map();
for (const element of document.querySelectorAll("[data-series]")) courses.set(element.dataset.series, { element, numbers: [] });

const notice = document.getElementById("live");

function tell(text) {
  // The same text again would be read out again.
  if (notice.textContent !== text) notice.textContent = text;
}

function follow(url, take) {
  const source = new EventSource(url);
  source.onmessage = (event) => {
    const news = JSON.parse(event.data);
    tell(news.error ? `Not live now: ${news.error}` : "");
    take(news);
  };
  // A stream that has ended is opened again; one that is refused, such as after the session, stays closed.
  source.onerror = () =>
    tell(source.readyState === EventSource.CLOSED ? "No longer live: load the page again." : "Not live now: connecting again.");
  window.addEventListener("pagehide", () => source.close());
}

const main = document.querySelector("[data-events]");
if (main) {
  follow(main.dataset.events, (news) => {
    for (const [series, number] of Object.entries(news)) {
      const course = courses.get(series);
      if (!course || typeof number !== "number") continue;
      course.numbers.push(number);
      if (course.numbers.length > MOST_NUMBERS) course.numbers.shift();
      course.element.querySelector(".value").textContent = number.toLocaleString("en");
      draw(course.element, course.numbers);
    }
  });
}

const tail = document.querySelector("table[data-tail]");
if (tail) {
  const titles = [...tail.querySelectorAll("th")];
  follow(tail.dataset.tail, (news) => {
    for (const cells of news.rows || []) {
      const row = tail.tBodies[0].insertRow(0);
      cells.forEach((text, at) => {
        const cell = row.insertCell();
        cell.textContent = text === null ? "–" : text;
        cell.className = titles[at].className;
      });
    }
    while (tail.tBodies[0].rows.length > MOST_ROWS) tail.tBodies[0].deleteRow(-1);
  });
}
