-- Print the headline of a study with DuckDB: of each comparison, the estimate of the report that is a mean of answers.
SELECT
  comparison,
  round(sum(value * weight) / sum(weight), 6) AS estimate,
  count(DISTINCT annotator) AS annotators,
  count(*) AS answers,
  headline.estimate AS what_it_is
FROM 'headline.csv' AS headline
GROUP BY comparison, headline.estimate
ORDER BY comparison;
