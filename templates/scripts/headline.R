# Print the headline of a study: of each comparison, the estimate of the report that is a mean of answers.
arguments <- commandArgs(trailingOnly = TRUE)
file <- if (length(arguments)) arguments[1] else "headline.csv"
rows <- if (grepl("\\.parquet$", file)) {
  as.data.frame(arrow::read_parquet(file))
} else if (grepl("\\.jsonl$", file)) {
  jsonlite::stream_in(file(file), verbose = FALSE)
} else {
  read.csv(file, encoding = "UTF-8")
}
for (part in split(rows, list(rows$comparison, rows$estimate), drop = TRUE)) {
  cat(sprintf(
    "%s\t%.6f\t%d annotators, %d answers\t%s\n", part$comparison[1], weighted.mean(part$value, part$weight),
    length(unique(part$annotator)), nrow(part), part$estimate[1]
  ))
}
